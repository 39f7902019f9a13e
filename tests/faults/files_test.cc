// Damaged files: a profile, the text of what was learned, an event log, a scenario, each with bits
// flipped, and cut off, at its bytes. A reader answers a value or a sentence; it never crashes, and
// what validates also opens.
//
// GPUSHARE_EVERY_BYTE=1 takes every byte; otherwise a sample that fits a quick test.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/abi/api_fixture.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare_test {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Scratch {
 public:
  Scratch() : path_(::testing::TempDir() + "damaged_" + std::to_string(::getpid())) {}
  ~Scratch() { std::remove(path_.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const char* Write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
    return path_.c_str();
  }

 private:
  const std::string path_;
};

// Calls `check` with each damaged text: one bit flipped at a byte, and cut off before it. `samples`
// is about how many bytes are taken.
template <class Check>
void ForEachDamage(const std::string& good, size_t samples, Check&& check) {
  const bool every = std::getenv("GPUSHARE_EVERY_BYTE") != nullptr;
  const size_t step = every ? 1 : std::max<size_t>(1, good.size() / samples);
  for (size_t i = 0; i < good.size() && !::testing::Test::HasFailure(); i += step) {
    SCOPED_TRACE("at byte " + std::to_string(i));
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    check(flipped);
    check(good.substr(0, i));
  }
}

bool IsRefusal(gpushare_status status) {
  return status == GPUSHARE_INVALID_ARGUMENT || status == GPUSHARE_DATA_LOSS;
}

void ExpectSentence() {
  const std::string message = gpushare_last_error_message();
  EXPECT_TRUE(!message.empty() && (message.back() == '.' || message.back() == '?')) << message;
}

gpushare_status Open(const char* path) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  options.profile_path = path;
  gpushare_runtime* runtime = nullptr;
  const gpushare_status status = gpushare_runtime_create(&options, &runtime);
  if (status == GPUSHARE_OK) gpushare_runtime_release(runtime);
  return status;
}

void ExpectValidOrRefused(const Scratch& scratch, const std::string& text) {
  const char* const path = scratch.Write(text);
  const gpushare_status valid = gpushare_profile_validate(path);
  if (valid != GPUSHARE_OK) {
    EXPECT_TRUE(IsRefusal(valid)) << gpushare_status_name(valid);
    ExpectSentence();
  }
  const gpushare_status opened = Open(path);
  EXPECT_EQ(opened == GPUSHARE_OK, valid == GPUSHARE_OK)
      << "validate answers " << gpushare_status_name(valid) << ", create "
      << gpushare_status_name(opened) << ": " << gpushare_last_error_message();
}

TEST(DamagedFilesTest, AProfileIsReadOrRefusedWithASentence) {
  const std::string good = Read(GPUSHARE_SMALL_PROFILE);
  ASSERT_GT(good.size(), 1000u);
  const Scratch scratch;
  ForEachDamage(good, 80, [&](const std::string& text) { ExpectValidOrRefused(scratch, text); });
}

// The text of what was learned, in a profile that was saved after work.
TEST(DamagedFilesTest, LearnedTextIsReadOrRefusedWithASentence) {
  const Scratch scratch;
  const char* const path = scratch.Write("");
  Api api;
  api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  api.Open({"sim", GPUSHARE_DRIVE_POLL});
  for (int i = 0; i < 20; ++i) {
    api.Finish(api.Submit(api.LcTask(), true));
    api.Finish(api.Submit(api.BeTask(5000), false));
  }
  ASSERT_OK(gpushare_profile_save(api.runtime, path));
  api.Close();
  const std::string good = Read(path);
  const size_t begin = good.find("\"learned\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string learned = good.substr(begin);
  ForEachDamage(learned, 80, [&](const std::string& text) {
    if (text.size() != learned.size()) return;  // cut off: the whole profile's test has it
    ExpectValidOrRefused(scratch, good.substr(0, begin) + text);
  });
}

TEST(DamagedFilesTest, AnEventLogIsReadOrRefusedWithASentence) {
  const Scratch scratch;
  Api api;
  api.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  api.Open({"sim", GPUSHARE_DRIVE_POLL});
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.event_log_path = scratch.Write("");
  trace.records_max = 1024;
  ASSERT_OK(gpushare_trace_start(api.runtime, &trace));
  for (int i = 0; i < 5; ++i) api.Finish(api.Submit(api.BeTask(5000), false));
  ASSERT_OK(gpushare_trace_stop(api.runtime, nullptr));
  api.Close();
  const std::string good = Read(trace.event_log_path);
  ASSERT_GT(good.size(), 500u);
  ForEachDamage(good, 300, [&](const std::string& text) {
    gpushare_event_log* log = nullptr;
    int64_t count = 0;
    const gpushare_status status = gpushare_event_log_open(scratch.Write(text), &log, &count);
    EXPECT_TRUE(IsRefusal(status)) << gpushare_status_name(status);
    ExpectSentence();
  });
}

TEST(DamagedFilesTest, AScenarioIsReadOrRefusedWithASentence) {
  const std::string good = Read(GPUSHARE_SCENARIO);
  ASSERT_GT(good.size(), 500u);
  ForEachDamage(good, 500, [&](const std::string& text) {
    try {
      gpushare::tool::ParseScenario(text, "damaged.json");
    } catch (const gpushare::tool::InputError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(!message.empty() && message.back() == '.') << message;
    }
  });
}

}  // namespace
}  // namespace gpushare_test
