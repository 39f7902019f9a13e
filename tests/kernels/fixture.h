// What the tests of the kernel contract share: a launcher on a GPU, or a visible skip; repeats and
// sizes from the environment.
//
//   GPUSHARE_REPEATS   how often randomised tests repeat, 20 when unset
//   GPUSHARE_SMALL     1: sizes that compute-sanitizer gets through
//   GPUSHARE_SEED      first seed of the random moments, 1 when unset

#ifndef GPUSHARE_TESTS_KERNELS_FIXTURE_H_
#define GPUSHARE_TESTS_KERNELS_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/kernels/form_launcher.h"
#include "tests/kernels/test_kernels.h"

namespace gpushare::kernels {

// NOLINTBEGIN(cppcoreguidelines-macro-usage): a failed status ends the test that it is in.
#define GPUSHARE_ASSERT_OK(expression)            \
  do {                                            \
    const Status status_ = (expression);          \
    ASSERT_TRUE(status_.ok()) << status_.message; \
  } while (false)
// NOLINTEND(cppcoreguidelines-macro-usage)

inline int EnvironmentNumber(const char* name, int fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::atoi(text);
}

inline bool Small() { return EnvironmentNumber("GPUSHARE_SMALL", 0) != 0; }
inline int Repeats() { return EnvironmentNumber("GPUSHARE_REPEATS", Small() ? 2 : 20); }
inline uint32_t FirstSeed() { return static_cast<uint32_t>(EnvironmentNumber("GPUSHARE_SEED", 1)); }

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = launcher_.Init();
    if (!status.ok()) GTEST_SKIP() << "No CUDA device is usable: " << status.message;
    random_.seed(FirstSeed());
  }

  // Waits without sleeping: moments are microseconds apart.
  void BusyWaitUs(double us) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double, std::micro>(us);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
  uint32_t RandomBelow(uint32_t bound) {
    return std::uniform_int_distribution<uint32_t>(0, bound - 1)(random_);
  }

  // Launches workers until all block tasks are done, and evicts each launch at a random moment of
  // its first `window_us`. After `evictions` launches the last ones are left alone.
  void RunWithEvictions(const FormTask& task, uint32_t workers, double window_us, int evictions,
                        uint32_t claim_batch) {
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    uint64_t done = 0;
    launches_ = 0;
    while (done < task.block_tasks()) {
      ASSERT_LT(launches_, evictions + kLaunchesToEnd) << "done " << done << " block tasks";
      gpushare_worker_launch header = launcher_.Header(task);
      header.claim_batch = claim_batch;
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task, header, workers));
      if (launches_ < evictions) {
        BusyWaitUs(window_us * RandomBelow(1000) / 1000);
        GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
      }
      gpushare_worker_completion record = {};
      GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
      done += record.block_tasks_done;
      ASSERT_EQ(record.block_tasks_left, task.block_tasks() - done);
      ++launches_;
    }
    ASSERT_EQ(done, task.block_tasks());
    uint64_t waiting = 0;
    GPUSHARE_ASSERT_OK(launcher_.ReadYieldsWaiting(&waiting));
    ASSERT_EQ(waiting, 0U) << "all is done, and block tasks wait on the yield list";
  }

  static constexpr int kLaunchesToEnd = 3;
  FormLauncher launcher_;
  std::mt19937 random_;
  int launches_ = 0;
};

// The buffers of a counting task, and what they say.
struct CountTask {
  CountParams params = {};
  FormTask task;
  DeviceBuffer executions, by_worker, by_sm, wrong, saved, results;

  Status Make(int (*variants)(gpushare_kernel_variants*), Grid grid, uint32_t workers_max,
              int32_t sms) {
    Status status = CudaStatus(variants(&task.variants), "NAME_variants");
    if (!status.ok()) return status;
    task.grid = grid;
    const size_t block_tasks = task.block_tasks();
    const size_t workers = workers_max > block_tasks ? workers_max : block_tasks;
    status = executions.Allocate(block_tasks * sizeof(uint32_t));
    if (status.ok()) status = by_worker.Allocate(workers * sizeof(uint32_t));
    if (status.ok()) status = by_sm.Allocate(static_cast<size_t>(sms) * sizeof(uint32_t));
    if (status.ok()) status = wrong.Allocate(sizeof(uint32_t));
    if (status.ok()) status = saved.Allocate(block_tasks * 256 * sizeof(uint32_t));
    if (status.ok()) status = results.Allocate(block_tasks * 256 * sizeof(uint32_t));
    params.executions = executions.as<uint32_t>();
    params.by_worker = by_worker.as<uint32_t>();
    params.by_sm = by_sm.as<uint32_t>();
    params.wrong = wrong.as<uint32_t>();
    params.saved = saved.as<uint32_t>();
    params.results = results.as<uint32_t>();
    params.grid_x = grid.x;
    params.grid_y = grid.y;
    params.grid_z = grid.z;
    params.steps = 1;
    task.params = &params;
    if (status.ok()) status = Clear();
    return status;
  }

  Status Clear() {
    Status status;
    for (DeviceBuffer* buffer : {&executions, &by_worker, &by_sm, &wrong, &results}) {
      if (status.ok()) status = ZeroBuffer(buffer);
    }
    return status;
  }

  static Status ZeroBuffer(DeviceBuffer* buffer);
  static std::vector<uint32_t> Words(const DeviceBuffer& buffer) {
    std::vector<uint32_t> words(buffer.bytes() / sizeof(uint32_t));
    const Status status = buffer.Read(0, buffer.bytes(), words.data());
    EXPECT_TRUE(status.ok()) << status.message;
    return words;
  }

  // Every block task was executed `times` times, and saw its own index.
  void ExpectEachExecuted(uint32_t times) const {
    EXPECT_EQ(Words(wrong)[0], 0U) << "block tasks saw a wrong index or grid";
    const std::vector<uint32_t> counts = Words(executions);
    uint32_t missing = 0;
    uint32_t repeated = 0;
    for (const uint32_t count : counts) {
      if (count < times) ++missing;
      if (count > times) ++repeated;
    }
    EXPECT_EQ(missing, 0U) << "of " << counts.size() << " block tasks";
    EXPECT_EQ(repeated, 0U) << "of " << counts.size() << " block tasks";
  }
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_TESTS_KERNELS_FIXTURE_H_
