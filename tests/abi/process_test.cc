// How the library behaves in a process that is not its own: signals, dlclose, the locale.

#include <dlfcn.h>
#include <gpushare/gpushare.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

gpushare_runtime* Open(const char* device) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = device;
  gpushare_runtime* runtime = nullptr;
  EXPECT_EQ(gpushare_runtime_create(&options, &runtime), GPUSHARE_OK)
      << gpushare_last_error_message();
  return runtime;
}

// The signals that each thread of the library blocks, one bit a signal.
std::vector<uint64_t> BlockedByTheLibrary() {
  std::vector<uint64_t> blocked;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "status");
    std::string line;
    bool ours = false;
    while (std::getline(file, line)) {
      if (line.rfind("Name:", 0) == 0) ours = line.find("gpushare") != std::string::npos;
      if (ours && line.rfind("SigBlk:", 0) == 0) {
        blocked.push_back(std::stoull(line.substr(7), nullptr, 16));
      }
    }
  }
  return blocked;
}

bool Blocks(uint64_t mask, int signal) { return (mask >> (signal - 1) & 1) != 0; }

// An application blocks SIGTERM after it opened the library, and waits for it in a thread of its
// own.
TEST(ProcessTest, ThreadsOfTheLibraryTakeNoSignals) {
  gpushare_runtime* const runtime = Open("null");
  ASSERT_NE(runtime, nullptr);
  std::vector<uint64_t> blocked;
  for (int i = 0; i < 1000 && blocked.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the thread names itself
    blocked = BlockedByTheLibrary();
  }
  ASSERT_EQ(blocked.size(), 1U);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPROF}) {
    EXPECT_TRUE(Blocks(blocked[0], signal)) << signal;
  }
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_FALSE(Blocks(blocked[0], fault)) << "a crash handler sees faults: " << fault;
  }
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0) << "the caller's own signals are its own";
  gpushare_runtime_release(runtime);
}

// A host of plugins closes the library while its thread lives.
TEST(ProcessTest, TheLibraryStaysWhereItsThreadsAre) {
  Dl_info info = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&gpushare_runtime_create), &info), 0);
  // Another copy, which this program does not hold.
  std::string folder = (std::filesystem::temp_directory_path() / "gpushare_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string copy = folder + "/libcopy.so";
  std::filesystem::copy_file(std::filesystem::canonical(info.dli_fname), copy);
  void* const library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto create = reinterpret_cast<decltype(&gpushare_runtime_create)>(
      dlsym(library, "gpushare_runtime_create"));
  const auto release = reinterpret_cast<decltype(&gpushare_runtime_release)>(
      dlsym(library, "gpushare_runtime_release"));
  ASSERT_TRUE(create != nullptr && release != nullptr);
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "null";
  gpushare_runtime* runtime = nullptr;
  ASSERT_EQ(create(&options, &runtime), GPUSHARE_OK);
  EXPECT_EQ(dlclose(library), 0);
  ASSERT_NE(dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr)
      << "the scheduler's thread runs code that is not mapped";
  EXPECT_EQ(release(runtime), GPUSHARE_OK);
  std::filesystem::remove_all(folder);
}

// Metrics have a decimal point whatever the application's locale.
TEST(ProcessTest, MetricsDoNotFollowTheLocale) {
  std::string folder = (std::filesystem::temp_directory_path() / "gpushare_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string make =
      "localedef -i de_DE -f UTF-8 '" + folder + "/de_DE.UTF-8' > /dev/null 2>&1";
  static_cast<void>(std::system(make.c_str()));
  setenv("LOCPATH", folder.c_str(), 1);
  const bool german = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  if (!german) GTEST_SKIP() << "This system makes no German locale.";
  std::string text(1 << 20, '\0');
  char number[16];
  std::snprintf(number, sizeof(number), "%.1f", 1.5);
  EXPECT_STREQ(number, "1,5");
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  gpushare_runtime* runtime = nullptr;
  ASSERT_EQ(gpushare_runtime_create(&options, &runtime), GPUSHARE_OK);
  gpushare_app_options app_options = GPUSHARE_APP_OPTIONS_INIT;
  app_options.name = "batch";
  app_options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  app_options.weight = 1.25;
  gpushare_app* app = nullptr;
  gpushare_queue* queue = nullptr;
  ASSERT_EQ(gpushare_app_create(runtime, &app_options, &app), GPUSHARE_OK);
  ASSERT_EQ(gpushare_queue_create(app, &queue), GPUSHARE_OK);
  gpushare_kernel_options kernel_options = GPUSHARE_KERNEL_OPTIONS_INIT;
  kernel_options.name = "sincos_27us";
  gpushare_kernel* kernel = nullptr;
  ASSERT_EQ(gpushare_kernel_register(runtime, &kernel_options, &kernel), GPUSHARE_OK);
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  task.kernel = kernel;
  task.block_tasks = 3001;
  gpushare_ticket ticket = {0};
  ASSERT_EQ(gpushare_submit_be(queue, &task, &ticket), GPUSHARE_OK);
  ASSERT_EQ(gpushare_ticket_wait(runtime, ticket, GPUSHARE_NEVER), GPUSHARE_OK);
  size_t size = 0;
  EXPECT_EQ(gpushare_metrics_text(runtime, text.data(), text.size(), &size), GPUSHARE_OK);
  std::setlocale(LC_ALL, "C");
  std::filesystem::remove_all(folder);
  std::istringstream lines(text.substr(0, size));
  int fractions = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string value = line.substr(line.rfind(' ') + 1);
    EXPECT_EQ(value.find(','), std::string::npos) << line;
    if (value.find('.') != std::string::npos) ++fractions;
  }
  EXPECT_GT(fractions, 0) << "no metric had a fraction";
  gpushare_kernel_release(kernel);
  gpushare_queue_release(queue);
  gpushare_app_release(app);
  gpushare_runtime_release(runtime);
}

}  // namespace
