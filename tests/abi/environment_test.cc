// What the environment sets where the application left an option at its default, and what it says
// with GPUSHARE_LOG=info. Public headers only. Threads: the test's own.

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class EnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.device = "sim";
    options_.drive = GPUSHARE_DRIVE_POLL;
    folder_ = std::filesystem::temp_directory_path() /
              ("gpushare_environment_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    for (const char* name :
         {"GPUSHARE_POLICY", "GPUSHARE_PROFILE", "GPUSHARE_TRACE", "GPUSHARE_LOG"}) {
      unsetenv(name);
    }
    std::filesystem::remove_all(folder_);
  }

  static void Set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  gpushare_runtime* Open() const {
    gpushare_runtime* runtime = nullptr;
    EXPECT_OK(gpushare_runtime_create(&options_, &runtime));
    return runtime;
  }
  gpushare_status Refused() const {
    gpushare_runtime* runtime = nullptr;
    return gpushare_runtime_create(&options_, &runtime);
  }
  static std::string PolicyOf(gpushare_runtime* runtime) {
    gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
    EXPECT_OK(gpushare_device_info_get(runtime, &info));
    const std::string policy = info.policy;
    EXPECT_OK(gpushare_runtime_release(runtime));
    return policy;
  }
  std::string Path(const char* name) const { return (folder_ / name).string(); }

  gpushare_runtime_options options_ = GPUSHARE_RUNTIME_OPTIONS_INIT;
  std::filesystem::path folder_;
};

TEST_F(EnvironmentTest, SetsThePolicyThatTheApplicationDoesNotState) {
  Set("GPUSHARE_POLICY", "fifo");
  EXPECT_EQ(PolicyOf(Open()), "fifo");
  options_.policy = "smguard";
  EXPECT_EQ(PolicyOf(Open()), "smguard");
  options_.policy = nullptr;
  Set("GPUSHARE_POLICY", "");
  EXPECT_EQ(PolicyOf(Open()), "adaptive");
  Set("GPUSHARE_POLICY", "fief");
  EXPECT_FAILS(Refused(), GPUSHARE_INVALID_ARGUMENT, "GPUSHARE_POLICY in the environment: ");
}

TEST_F(EnvironmentTest, SetsTheProfile) {
  const std::string path = Path("mine.json");
  std::stringstream text;
  text << std::ifstream(std::getenv("GPUSHARE_TEST_PROFILE")).rdbuf();
  std::string profile = text.str();
  const std::string name = "\"name\": \"h200\"";
  ASSERT_NE(profile.find(name), std::string::npos);
  std::ofstream(path) << profile.replace(profile.find(name), name.size(), "\"name\": \"mine\"");
  Set("GPUSHARE_PROFILE", path);
  gpushare_runtime* const runtime = Open();
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  EXPECT_OK(gpushare_device_info_get(runtime, &info));
  EXPECT_STREQ(info.profile, "mine");
  EXPECT_OK(gpushare_runtime_release(runtime));
  Set("GPUSHARE_PROFILE", Path("absent.json"));
  EXPECT_FAILS(Refused(), GPUSHARE_NOT_FOUND, "GPUSHARE_PROFILE in the environment: ");
  options_.profile_path = path.c_str();  // the option comes first
  EXPECT_OK(gpushare_runtime_release(Open()));
}

TEST_F(EnvironmentTest, TraceIsWrittenWhenTheRuntimeEndsAndReplacesNoOther) {
  Set("GPUSHARE_TRACE", Path("run.%p.pftrace"));
  const std::string name = "run." + std::to_string(getpid()) + ".pftrace";
  gpushare_runtime* const first = Open();
  gpushare_runtime* const second = Open();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_OK(gpushare_runtime_release(first));
  EXPECT_OK(gpushare_runtime_release(second));
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(file.path().filename().string().rfind(name, 0), 0u) << file;
    ++files;
  }
  EXPECT_EQ(files, 2);
  Set("GPUSHARE_TRACE", Path("absent/run.pftrace"));
  EXPECT_FAILS(Refused(), GPUSHARE_NOT_FOUND, "GPUSHARE_TRACE in the environment: ");
}

TEST_F(EnvironmentTest, TraceOfTheApplicationEndsThatOfTheEnvironment) {
  Set("GPUSHARE_TRACE", Path("environment.pftrace"));
  gpushare_runtime* const runtime = Open();
  EXPECT_FAILS(gpushare_trace_stop(runtime, nullptr), GPUSHARE_FAILED_PRECONDITION, "No trace");
  const std::string own = Path("own.pftrace");
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.perfetto_path = own.c_str();
  EXPECT_OK(gpushare_trace_start(runtime, &trace));
  EXPECT_FALSE(std::filesystem::is_empty(folder_));  // the environment's is written
  EXPECT_OK(gpushare_trace_stop(runtime, nullptr));
  EXPECT_TRUE(std::filesystem::exists(own));
  EXPECT_OK(gpushare_runtime_release(runtime));
}

TEST_F(EnvironmentTest, LogSaysWhatRunsOnlyIfAsked) {
  EXPECT_FAILS((Set("GPUSHARE_LOG", "debug"), Refused()), GPUSHARE_INVALID_ARGUMENT, "'debug'");
  for (const char* level : {"warning", "info"}) {
    Set("GPUSHARE_LOG", level);
    testing::internal::CaptureStderr();
    Api api;
    api.opening.policy = nullptr;
    api.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(api.Finish(api.Submit(api.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
      EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
    }
    api.Close();
    const std::string said = testing::internal::GetCapturedStderr();
    const bool asked = std::string(level) == "info";
    for (const char* text :
         {"gpushare: info: gpushare 0.", "device sim, 132 SMs, SIMULATED", "policy adaptive",
          "app 'service' is latency-critical: states no bound.",
          "app 'training' is best-effort, weight 1.", "arrangement: "}) {
      EXPECT_EQ(said.find(text) != std::string::npos, asked) << text << " in: " << said;
    }
  }
}

}  // namespace
}  // namespace gpushare_test
