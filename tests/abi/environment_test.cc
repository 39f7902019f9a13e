// What the environment sets where the application left an option at its default, and what it says
// with GPUSHARE_LOG=info. Public headers only. Threads: the test's own.

#include <fcntl.h>
#include <gpushare/gpushare.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

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
    for (const char* name : {"GPUSHARE_POLICY", "GPUSHARE_PROFILE", "GPUSHARE_TRACE",
                             "GPUSHARE_LOG", "GPUSHARE_DEVICE"}) {
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

TEST_F(EnvironmentTest, ThePathThatIsWrittenIsTheOneThatIsChecked) {
  const std::string path = Path("run.pftrace");
  Set("GPUSHARE_TRACE", path);
  EXPECT_OK(gpushare_runtime_release(Open()));
  // Another test of this process may have opened runtimes: the number is any.
  EXPECT_OK(gpushare_runtime_release(Open()));
  int number = 2;
  while (!std::filesystem::exists(path + "." + std::to_string(number))) ASSERT_LT(++number, 100);
  while (std::filesystem::exists(path + "." + std::to_string(number + 1))) ++number;
  const std::string next = path + "." + std::to_string(number + 1);
  std::filesystem::create_directory(next);
  EXPECT_FAILS(Refused(), GPUSHARE_UNAVAILABLE, next);
  std::filesystem::remove(next);
  EXPECT_OK(gpushare_runtime_release(Open()));  // a refused runtime takes no number
  EXPECT_TRUE(std::filesystem::exists(next));
  const std::string fifo = Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Set("GPUSHARE_TRACE", fifo);
  EXPECT_FAILS(Refused(), GPUSHARE_INVALID_ARGUMENT, "is no regular file");
}

TEST_F(EnvironmentTest, ATraceOfTheApplicationThatIsRefusedEndsNone) {
  const std::string environment = Path("environment.pftrace");
  Set("GPUSHARE_TRACE", environment);
  gpushare_runtime* const runtime = Open();
  const std::string absent = Path("absent/own.pftrace");
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.perfetto_path = absent.c_str();
  EXPECT_FAILS(gpushare_trace_start(runtime, &trace), GPUSHARE_NOT_FOUND, "absent");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_OK(gpushare_runtime_release(runtime));
  EXPECT_FALSE(std::filesystem::is_empty(folder_));
}

TEST_F(EnvironmentTest, ADeviceThatMeansNothingNamesTheVariable) {
  Set("GPUSHARE_DEVICE", "tpu");
  EXPECT_OK(gpushare_runtime_release(Open()));  // the option comes first
  options_.device = nullptr;
  EXPECT_FAILS(Refused(), GPUSHARE_INVALID_ARGUMENT, "GPUSHARE_DEVICE in the environment: ");
  Set("GPUSHARE_DEVICE", "sim:realtime");
  EXPECT_OK(gpushare_runtime_release(Open()));
  Set("GPUSHARE_DEVICE", "");
  options_.device = "tpu";
  gpushare_runtime* runtime = nullptr;
  EXPECT_EQ(gpushare_runtime_create(&options_, &runtime), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(gpushare_last_error_message()).find("environment"), std::string::npos);
}

TEST_F(EnvironmentTest, ALogThatMeansNothingCountsOnlyWithoutALogCallback) {
  Set("GPUSHARE_LOG", "debug");
  EXPECT_FAILS(Refused(), GPUSHARE_INVALID_ARGUMENT, "'debug'");
  options_.log = [](void*, gpushare_log_level, const char*) {};
  EXPECT_OK(gpushare_runtime_release(Open()));
}

// stderr as a pipe without room, until the end or until somebody has waited for it too long.
class FullStderr {
 public:
  FullStderr() : kept_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, '.');
    while (write(ends_[1], page.data(), page.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
    reader_ = std::thread([this] {
      for (int i = 0; i < 500 && !ended_; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      drained_ = !ended_;
      std::array<char, 4096> bytes;
      fcntl(ends_[0], F_SETFL, O_NONBLOCK);
      while (read(ends_[0], bytes.data(), bytes.size()) > 0 || !ended_) std::this_thread::yield();
    });
  }
  ~FullStderr() {
    ended_ = true;
    dup2(kept_, STDERR_FILENO);
    reader_.join();
    for (const int fd : {kept_, ends_[0], ends_[1]}) close(fd);
  }
  FullStderr(const FullStderr&) = delete;
  FullStderr& operator=(const FullStderr&) = delete;
  bool drained() const { return drained_; }

 private:
  const int kept_;
  std::array<int, 2> ends_ = {};
  std::atomic<bool> ended_{false};
  std::atomic<bool> drained_{false};
  std::thread reader_;
};

TEST_F(EnvironmentTest, ALineOfAnArrangementDoesNotWaitForStderr) {
  Set("GPUSHARE_LOG", "info");
  Api api;
  testing::internal::CaptureStderr();
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
  testing::internal::GetCapturedStderr();
  const auto run = [&api] {
    EXPECT_EQ(api.Finish(api.Submit(api.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(api.Finish(api.Submit(api.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  };
  bool waited = true;
  {
    const FullStderr full;
    for (int i = 0; i < 20; ++i) run();
    waited = full.drained();
  }
  EXPECT_FALSE(waited);
  testing::internal::CaptureStderr();
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  for (int i = 0; i < 20; ++i) run();
  api.Close();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("arrangement: "), std::string::npos) << said;
  EXPECT_NE(said.find("choices that are not shown"), std::string::npos) << said;
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
