// The kernel contract by kernels that count: every block task runs once and sees its own index,
// whatever the form, the batch, the moment of an eviction and the epoch.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/kernels/fixture.h"

namespace gpushare::kernels {

Status CountTask::ZeroBuffer(DeviceBuffer* buffer) {
  return CudaStatus(cudaMemset(buffer->data(), 0, buffer->bytes()), "cudaMemset");
}

namespace {

constexpr uint64_t kSpinNs = 5000;

class ContractTest : public KernelTest {
 protected:
  Grid Scaled(uint32_t x, uint32_t y, uint32_t z) const {
    return Small() ? Grid{(x + 7) / 8, y, z} : Grid{x, y, z};
  }
  void Make(int (*variants)(gpushare_kernel_variants*), Grid grid) {
    gpushare_kernel_variants made = {};
    GPUSHARE_ASSERT_OK(CudaStatus(variants(&made), "NAME_variants"));
    const uint32_t workers = made.workers_per_sm * static_cast<uint32_t>(launcher_.sms());
    count_ = std::make_unique<CountTask>();
    GPUSHARE_ASSERT_OK(count_->Make(variants, grid, workers, launcher_.sms()));
    count_->params.spin_ns = kSpinNs;
  }
  uint32_t Workers() const { return launcher_.FullWorkers(count_->task); }

  void RunWorkers(const gpushare_worker_launch& header, uint32_t workers) {
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, workers));
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
  }

  // The header's block tasks, by the slice variant and by workers without a counter, which is what
  // runs the slices of a kernel that has none.
  enum class SliceBy { kSlice, kWorkers };
  static constexpr SliceBy kBoth[] = {SliceBy::kSlice, SliceBy::kWorkers};
  void RunSlice(SliceBy by, gpushare_worker_launch header) {
    header.counter = nullptr;
    if (by == SliceBy::kWorkers) {
      RunWorkers(header, header.block_count);
      return;
    }
    GPUSHARE_ASSERT_OK(launcher_.LaunchSlice(count_->task, header));
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
  }

  std::unique_ptr<CountTask> count_;
  gpushare_worker_completion record_ = {};
};

TEST_F(ContractTest, OriginalGridsOfOneToThreeDimensionsSeeTheirIndex) {
  for (const Grid grid : {Grid{611, 1, 1}, Grid{37, 19, 1}, Grid{11, 7, 5}}) {
    Make(gpushare_test_count_variants, grid);
    count_->params.by_worker = nullptr;
    GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(count_->task));
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    count_->ExpectEachExecuted(1);
  }
}

TEST_F(ContractTest, WorkersSeeTheIndexOfOneToThreeDimensions) {
  for (const Grid grid :
       {Grid{1, 1, 1}, Grid{611, 1, 1}, Grid{37, 19, 1}, Grid{1, 1, 23}, Grid{11, 7, 5}}) {
    Make(gpushare_test_count_variants, grid);
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    RunWorkers(launcher_.Header(count_->task), Workers());
    EXPECT_EQ(record_.block_tasks_done, count_->task.block_tasks());
    count_->ExpectEachExecuted(1);
  }
}

TEST_F(ContractTest, BatchesTakeEveryBlockTaskOnce) {
  Make(gpushare_test_shared_variants, Scaled(10007, 1, 1));
  for (const uint32_t batch : {0U, 1U, 2U, 3U, 7U, 64U, 20000U}) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    count_->params.spin_ns = 100;
    gpushare_worker_launch header = launcher_.Header(count_->task);
    header.claim_batch = batch;
    RunWorkers(header, Workers());
    EXPECT_EQ(record_.block_tasks_done, count_->task.block_tasks()) << "batch " << batch;
    count_->ExpectEachExecuted(1);
    const std::vector<uint32_t> results = CountTask::Words(count_->results);
    for (uint32_t i = 0; i < results.size(); ++i) {
      ASSERT_EQ(results[i], i / 256 * 7919U + 255 - i % 256) << "batch " << batch << ", " << i;
    }
  }
}

TEST_F(ContractTest, LargeSharedMemoryIsDynamicAndWhole) {
  Make(gpushare_test_large_shared_variants, Scaled(900, 1, 1));
  EXPECT_EQ(count_->task.variants.dynamic_shared_bytes, 65536U);
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  RunWorkers(launcher_.Header(count_->task), Workers());
  count_->ExpectEachExecuted(1);
  const std::vector<uint32_t> results = CountTask::Words(count_->results);
  for (uint32_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i], i / 256 * 7919U + 16383 - i % 256) << i;
  }
}

TEST_F(ContractTest, SlicesCoverTheGridOnce) {
  for (const SliceBy by : kBoth) {
    Make(gpushare_test_count_variants, Scaled(83, 9, 3));
    count_->params.spin_ns = 100;
    const uint32_t block_tasks = count_->task.block_tasks();
    uint32_t begin = 0;
    while (begin < block_tasks) {
      gpushare_worker_launch header = launcher_.Header(count_->task);
      header.block_begin = begin;
      header.block_count = std::min(block_tasks - begin, 1 + RandomBelow(400));
      RunSlice(by, header);
      ASSERT_EQ(record_.block_tasks_done, header.block_count);
      begin += header.block_count;
    }
    count_->ExpectEachExecuted(1);
  }
}

TEST_F(ContractTest, SlicesAreNotEvicted) {
  for (const SliceBy by : kBoth) {
    Make(gpushare_test_count_variants, Scaled(200, 1, 1));
    const gpushare_worker_launch header = launcher_.Header(count_->task);
    GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    RunSlice(by, header);
    count_->ExpectEachExecuted(1);
  }
}

TEST_F(ContractTest, ARangeOfBlockTasksIsKeptByWorkers) {
  Make(gpushare_test_count_variants, Grid{100, 1, 1});
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  header.block_begin = 30;
  header.block_count = 40;
  RunWorkers(header, 16);
  EXPECT_EQ(record_.block_tasks_done, 40U);
  const std::vector<uint32_t> counts = CountTask::Words(count_->executions);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(counts[i], i >= 30 && i < 70 ? 1U : 0U) << i;
}

TEST_F(ContractTest, LaunchWithoutScratchReportsNothingAndWorks) {
  Make(gpushare_test_count_variants, Grid{100, 1, 1});
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  header.scratch = nullptr;
  header.completion = nullptr;
  header.eviction_word = nullptr;
  GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, 16));
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  count_->ExpectEachExecuted(1);
}

TEST_F(ContractTest, EvictedBeforeItStartsALaunchClaimsNothing) {
  Make(gpushare_test_count_variants, Grid{1000, 1, 1});
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  const gpushare_worker_launch header = launcher_.Header(count_->task);
  GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  RunWorkers(header, Workers());
  EXPECT_EQ(record_.block_tasks_done, 0U);
  uint32_t counter = 1;
  GPUSHARE_ASSERT_OK(launcher_.ReadCounter(&counter));
  EXPECT_EQ(counter, 0U);
}

TEST_F(ContractTest, EvictionsAtRandomMomentsLoseAndRepeatNothing) {
  Make(gpushare_test_count_variants, Scaled(6000, 1, 1));
  int evicted_midway = 0;
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    RunWithEvictions(count_->task, Workers() / 2, 60, 6, 1 + RandomBelow(3));
    if (HasFatalFailure()) return;
    count_->ExpectEachExecuted(1);
    if (launches_ > 1) ++evicted_midway;
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", seed " << FirstSeed();
  }
  EXPECT_TRUE(Small() || evicted_midway > 0) << "no launch was evicted, so nothing was tested";
}

TEST_F(ContractTest, OnlyWorkersBeyondTheKeptOnesLeave) {
  constexpr uint32_t kKept = 5;
  Make(gpushare_test_count_variants, Scaled(4000, 1, 1));
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  const gpushare_worker_launch header = launcher_.Header(count_->task);
  GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, kKept));
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  RunWorkers(header, Workers());
  EXPECT_EQ(record_.block_tasks_done, count_->task.block_tasks());
  count_->ExpectEachExecuted(1);
  const std::vector<uint32_t> by_worker = CountTask::Words(count_->by_worker);
  for (uint32_t worker = 0; worker < Workers(); ++worker) {
    EXPECT_EQ(by_worker[worker] > 0, worker < kKept) << "worker " << worker;
  }
}

TEST_F(ContractTest, PartialEvictionMidwayLetsTheRestFinish) {
  constexpr uint32_t kKept = 16;
  Make(gpushare_test_count_variants, Scaled(6000, 1, 1));
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    const gpushare_worker_launch header = launcher_.Header(count_->task);
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, Workers() / 2));
    BusyWaitUs(RandomBelow(40));
    GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, kKept));
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
    ASSERT_EQ(record_.block_tasks_done, count_->task.block_tasks()) << "repeat " << repeat;
    count_->ExpectEachExecuted(1);
  }
}

// The leader is block 0 and no worker: with it a launch has a block more.
TEST_F(ContractTest, LeaderRelaysTheHostsWord) {
  Make(gpushare_test_count_variants, Scaled(6000, 1, 1));
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    uint64_t done = 0;
    for (int launches = 0; done < count_->task.block_tasks(); ++launches) {
      ASSERT_LT(launches, 10) << "repeat " << repeat;
      gpushare_worker_launch header = launcher_.Header(count_->task);
      launcher_.UseLeader(&header);
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, 1 + Workers() / 2));
      if (launches < 5) {
        BusyWaitUs(RandomBelow(60));
        launcher_.EvictByLeader(header.epoch, 0);
      }
      GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
      done += record_.block_tasks_done;
      ASSERT_EQ(record_.block_tasks_left, count_->task.block_tasks() - done);
    }
    count_->ExpectEachExecuted(1);
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", seed " << FirstSeed();
  }
}

TEST_F(ContractTest, LeaderRelaysOneEvictionAfterAnother) {
  Make(gpushare_test_count_variants, Scaled(6000, 1, 1));
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    gpushare_worker_launch header = launcher_.Header(count_->task);
    launcher_.UseLeader(&header);
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, 1 + Workers() / 2));
    for (const uint32_t kept : {16U, 3U, 0U}) {
      BusyWaitUs(RandomBelow(30));
      launcher_.EvictByLeader(header.epoch, kept);
    }
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
    const uint32_t done = record_.block_tasks_done;
    ASSERT_EQ(record_.block_tasks_left, count_->task.block_tasks() - done);
    header = launcher_.Header(count_->task);
    launcher_.UseLeader(&header);
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, 1 + Workers() / 2));
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
    ASSERT_EQ(done + record_.block_tasks_done, count_->task.block_tasks()) << "repeat " << repeat;
    count_->ExpectEachExecuted(1);
  }
}

TEST_F(ContractTest, EpochsWrapWithoutHarm) {
  Make(gpushare_test_count_variants, Scaled(2000, 1, 1));
  count_->params.spin_ns = 0;
  struct Case {
    uint32_t launch, word;
    bool evicted;
  };
  const Case cases[] = {
      {2, 0xFFFFFFFFU, false},            // an eviction of three launches before, across the wrap
      {0xFFFFFFFFU, 0xFFFFFFFEU, false},  // of the launch before
      {0xFFFFFFFFU, 0xFFFFFFFFU, true},  {0xFFFFFFFFU, 2, true},  // of a later epoch, past the wrap
      {0x80000001U, 0x80000000U, false}, {0x7FFFFFFFU, 0x80000000U, true},
  };
  for (const Case& now : cases) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    gpushare_worker_launch header = launcher_.Header(count_->task);
    header.epoch = now.launch;
    GPUSHARE_ASSERT_OK(launcher_.Evict(now.word, 0));
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    RunWorkers(header, Workers());
    EXPECT_EQ(record_.block_tasks_done, now.evicted ? 0 : count_->task.block_tasks())
        << "launch " << now.launch << ", word " << now.word;
  }
}

TEST_F(ContractTest, SmBoundWorkersStayOnTheirSms) {
  Make(gpushare_test_count_variants, Scaled(4000, 1, 1));
  const auto sms = static_cast<uint32_t>(launcher_.sms());
  const uint32_t first = sms / 4;
  const uint32_t sm_count = sms / 3;
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  header.sm_first = first;
  header.sm_count = sm_count;
  RunWorkers(header, Workers());
  EXPECT_EQ(record_.block_tasks_done, count_->task.block_tasks());
  count_->ExpectEachExecuted(1);
  const std::vector<uint32_t> by_sm = CountTask::Words(count_->by_sm);
  for (uint32_t sm = 0; sm < sms; ++sm) {
    const bool inside = sm >= first && sm < first + sm_count;
    EXPECT_TRUE(inside || by_sm[sm] == 0) << "SM " << sm << " executed " << by_sm[sm];
  }
}

TEST_F(ContractTest, WorkersPerSmAreBoundAndTheCountsComeBack) {
  Make(gpushare_test_count_variants, Scaled(4000, 1, 1));
  const auto sms = static_cast<uint32_t>(launcher_.sms());
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  header.sm_workers = launcher_.sm_workers();
  header.workers_per_sm = 2;
  RunWorkers(header, Workers());
  EXPECT_EQ(record_.block_tasks_done, count_->task.block_tasks());
  count_->ExpectEachExecuted(1);
  std::vector<uint32_t> left(sms, 1);
  GPUSHARE_ASSERT_OK(launcher_.ReadSmWorkers(left.data()));
  EXPECT_THAT(left, testing::Each(0U));
  uint32_t stayed = 0;
  for (const uint32_t count : CountTask::Words(count_->by_worker)) stayed += count > 0 ? 1 : 0;
  EXPECT_GT(stayed, 0U);
  // A worker's place may be taken again by a block that starts when it has left, hence not exact.
  EXPECT_LE(stayed, 2 * sms + sms / 4);
}

TEST_F(ContractTest, RetiredCounterIsZeroAgain) {
  Make(gpushare_test_count_variants, Grid{100, 1, 1});
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  DeviceBuffer retired;
  GPUSHARE_ASSERT_OK(retired.Allocate(sizeof(uint32_t)));
  GPUSHARE_ASSERT_OK(retired.FillPattern());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  header.retired_counter = retired.as<uint32_t>();
  RunWorkers(header, 16);
  EXPECT_EQ(CountTask::Words(retired)[0], 0U);
}

TEST_F(ContractTest, EnterAndLeaveComeOncePerWorker) {
  Make(gpushare_test_enter_leave_variants, Scaled(5000, 1, 1));
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  RunWorkers(launcher_.Header(count_->task), Workers());
  count_->ExpectEachExecuted(1);
  const std::vector<uint32_t> by_worker = CountTask::Words(count_->by_worker);
  EXPECT_EQ(std::accumulate(by_worker.begin(), by_worker.end(), 0U), count_->task.block_tasks());
}

class YieldTest : public ContractTest {
 protected:
  static constexpr uint32_t kSteps = 9;

  void MakeSteps(uint32_t block_tasks) {
    Make(gpushare_test_steps_variants, Scaled(block_tasks, 1, 1));
    count_->params.steps = kSteps;
  }
  void ExpectResults() const {
    const std::vector<uint32_t> results = CountTask::Words(count_->results);
    for (uint32_t i = 0; i < results.size(); ++i) {
      ASSERT_EQ(results[i], StepsResult(i / 256, i % 256, kSteps)) << "thread " << i;
    }
  }
};

TEST_F(YieldTest, OriginalGridRunsAllSteps) {
  MakeSteps(500);
  GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(count_->task));
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  count_->ExpectEachExecuted(kSteps);
  ExpectResults();
}

TEST_F(YieldTest, SliceRunsAllSteps) {
  for (const SliceBy by : kBoth) {
    MakeSteps(500);
    const gpushare_worker_launch header = launcher_.Header(count_->task);
    GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
    RunSlice(by, header);
    count_->ExpectEachExecuted(kSteps);
    ExpectResults();
  }
}

TEST_F(YieldTest, InterruptedBlockTasksGoOnWhereTheyStopped) {
  MakeSteps(3000);
  int interrupted = 0;
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    RunWithEvictions(count_->task, Workers() / 2, 100, 8, 4);
    if (HasFatalFailure()) return;
    count_->ExpectEachExecuted(kSteps);
    ExpectResults();
    if (launches_ > 1) ++interrupted;
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", seed " << FirstSeed();
  }
  EXPECT_TRUE(Small() || interrupted > 0) << "no launch was evicted, so nothing was tested";
}

TEST_F(YieldTest, EvictionLeavesInterruptedBlockTasksOnTheList) {
  MakeSteps(3000);
  count_->params.spin_ns = Small() ? kSpinNs : 100 * kSpinNs;
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  const gpushare_worker_launch header = launcher_.Header(count_->task);
  const uint32_t workers = std::min(Workers(), count_->task.block_tasks());
  GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, workers));
  BusyWaitUs(200);
  GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
  GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
  uint64_t waiting = 0;
  GPUSHARE_ASSERT_OK(launcher_.ReadYieldsWaiting(&waiting));
  uint32_t counter = 0;
  GPUSHARE_ASSERT_OK(launcher_.ReadCounter(&counter));
  // Claimed is either done or waiting.
  EXPECT_EQ(record_.block_tasks_done + waiting, std::min(counter, count_->task.block_tasks()));
  EXPECT_TRUE(Small() || waiting > 0);
}

// A worker looks first at the words that are its own by its index and the number of workers.
TEST_F(YieldTest, AnyNumberOfWorkersGoesOnWithWhatOthersLeft) {
  MakeSteps(3000);
  count_->params.spin_ns = Small() ? kSpinNs : 10 * kSpinNs;
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    uint64_t done = 0;
    for (const uint32_t workers : {Workers(), 37U, 1 + Workers() / 3, 1U, Workers(), 64U}) {
      const gpushare_worker_launch header = launcher_.Header(count_->task);
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, workers));
      if (workers != 64) {  // these run to the end
        BusyWaitUs(100 + RandomBelow(200));
        GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
      }
      GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
      done += record_.block_tasks_done;
      ASSERT_EQ(record_.block_tasks_left, count_->task.block_tasks() - done) << workers;
    }
    ASSERT_EQ(done, count_->task.block_tasks());
    count_->ExpectEachExecuted(kSteps);
    ExpectResults();
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", seed " << FirstSeed();
  }
}

// Evicted workers of a kept few: their block tasks are nobody's own, and the kept ones find them.
TEST_F(YieldTest, KeptWorkersGoOnWithWhatTheOthersLeft) {
  MakeSteps(3000);
  count_->params.spin_ns = Small() ? kSpinNs : 10 * kSpinNs;
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, Workers()));
  BusyWaitUs(200);
  // Far more block tasks are left than the kept ones execute before the others have left.
  GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 20));
  GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
  EXPECT_EQ(record_.block_tasks_done, count_->task.block_tasks());
  EXPECT_EQ(record_.block_tasks_left, 0U);
  count_->ExpectEachExecuted(kSteps);
  ExpectResults();
}

// Workers that race for one word resume one after another, a thousand round trips to L2.
TEST_F(YieldTest, InterruptedBlockTasksResumeTogether) {
  if (Small()) GTEST_SKIP() << "Times mean nothing under a sanitizer.";
  constexpr uint64_t kStepNs = 100'000;
  constexpr uint64_t kSlackNs = 300'000;
  MakeSteps(1);
  MakeSteps(Workers());
  count_->params.spin_ns = kStepNs;
  GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(count_->task));  // loads the code
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  uint64_t waiting = 0;
  // Again where the host was late: then some block tasks had ended.
  for (int attempt = 0; attempt < 10 && waiting != Workers(); ++attempt) {
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    const gpushare_worker_launch header = launcher_.Header(count_->task);
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, Workers()));
    BusyWaitUs(250);
    GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
    GPUSHARE_ASSERT_OK(launcher_.ReadYieldsWaiting(&waiting));
  }
  ASSERT_EQ(waiting, Workers());
  RunWorkers(launcher_.Header(count_->task), Workers());
  EXPECT_EQ(record_.block_tasks_done, Workers());
  EXPECT_LT(record_.end_globaltimer_ns - record_.start_globaltimer_ns, kSteps * kStepNs + kSlackNs);
}

TEST_F(YieldTest, WithoutAListBlockTasksRunToTheirEnd) {
  MakeSteps(1000);
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(count_->task);
  header.yield_list = nullptr;
  header.yield_capacity = 0;
  GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, 64));
  BusyWaitUs(30);
  GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
  GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
  uint32_t counter = 0;
  GPUSHARE_ASSERT_OK(launcher_.ReadCounter(&counter));
  EXPECT_EQ(record_.block_tasks_done, std::min(counter, count_->task.block_tasks()));
}

// A full list only makes the others go on: nothing is lost.
TEST_F(YieldTest, AListThatIsTooShortLosesNothing) {
  MakeSteps(2000);
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(count_->Clear());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    uint64_t done = 0;
    int launches = 0;
    while (done < count_->task.block_tasks()) {
      ASSERT_LT(launches, 20);
      gpushare_worker_launch header = launcher_.Header(count_->task);
      header.yield_capacity = 3;
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(count_->task, header, Workers() / 2));
      if (launches < 4) {
        BusyWaitUs(RandomBelow(100));
        GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 0));
      }
      GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record_));
      done += record_.block_tasks_done;
      ++launches;
    }
    count_->ExpectEachExecuted(kSteps);
    ExpectResults();
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat;
  }
}

// In a process of its own: the trap ends the CUDA context.
TEST(EarlyReturnDeathTest, AThreadThatReturnsBeforeABarrierIsTold) {
  if (!gpushare_test_has_checks()) GTEST_SKIP() << "The barrier checks are compiled out.";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    FormLauncher launcher;
    if (!launcher.Init().ok()) std::exit(77);
    CountTask count;
    if (!count.Make(gpushare_test_early_return_variants, Grid{64, 1, 1}, 64, launcher.sms()).ok() ||
        !launcher.BeginTask().ok()) {
      std::exit(78);
    }
    const gpushare_worker_launch header = launcher.Header(count.task);
    if (!launcher.LaunchWorkers(count.task, header, 8).ok()) std::exit(79);
    std::_Exit(launcher.Wait().ok() ? 80 : 3);
  };
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    GTEST_SKIP() << "No CUDA device is usable.";
  }
  EXPECT_EXIT(run(), testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace gpushare::kernels
