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

}  // namespace
