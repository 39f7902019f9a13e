// Jobs on threads that the system may refuse, as in a container with a limit of processes.

#include "tools/gpushare/colocate/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace gpushare::tool {
namespace {

// No address space holds the stacks of new threads.
class NoNewThreads {
 public:
  NoNewThreads() { Set(size_t{1} << 47); }
  ~NoNewThreads() { Set(size_t{8} << 20); }

 private:
  static void Set(size_t stack_bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }
};

TEST(ParallelTest, EachJobRunsOnce) {
  std::vector<std::atomic<int>> runs(50);
  std::atomic<bool> stop{false};
  RunParallel(runs.size(), 4, stop, [&](size_t job) { ++runs[job]; });
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
}

TEST(ParallelTest, WithoutMoreThreadsTheCallersDoesAllJobs) {
  std::vector<std::atomic<int>> runs(50);
  std::set<std::thread::id> threads;
  std::atomic<bool> stop{false};
  {
    const NoNewThreads none;
    ASSERT_ANY_THROW(std::thread([] {}).join());
    RunParallel(runs.size(), 4, stop, [&](size_t job) {
      ++runs[job];
      threads.insert(std::this_thread::get_id());
    });
  }
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(ParallelTest, AFailureOfAJobIsThrown) {
  std::atomic<bool> stop{false};
  EXPECT_THROW(RunParallel(4, 2, stop, [](size_t) { throw std::runtime_error("a job"); }),
               std::runtime_error);
  EXPECT_TRUE(stop);
}

}  // namespace
}  // namespace gpushare::tool
