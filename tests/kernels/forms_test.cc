// Every kernel of the catalogue in every form gives the same bits, and the right ones: original
// grid, workers, slices, SM-bound workers, workers evicted at random moments and resumed.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "tests/kernels/fixture.h"

namespace gpushare::kernels {
namespace {

constexpr double kVerifySeconds = 1;

class FormsTest : public KernelTest, public testing::WithParamInterface<const CatalogueKernel*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    const CatalogueKernel& kernel = *GetParam();
    const int code = kernel.variants(&task_.variants);
    if (code == cudaErrorNoKernelImageForDevice) {
      GTEST_SKIP() << CudaStatus(code, kernel.name).message;
    }
    GPUSHARE_ASSERT_OK(CudaStatus(code, kernel.name));
    WorkloadOptions options;
    options.sms = launcher_.sms();
    // Not a multiple of the workers, and each block task with results of its own.
    options.block_tasks = Small() ? 72 : 2 * 8 * static_cast<uint32_t>(options.sms) + 88;
    options.block_task_us = Small() ? 1 : kBlockTaskUs;
    options.steps = kernel.yields ? kSteps : 0;
    options.seed = FirstSeed();
    GPUSHARE_ASSERT_OK(MakeWorkload(kernel, options, &workload_));
    ASSERT_EQ(workload_->distinct_block_tasks(), workload_->block_tasks());
    ASSERT_EQ(task_.variants.params_bytes, workload_->params_bytes());
    task_.params = workload_->params();
    task_.grid = workload_->grid();
    GPUSHARE_ASSERT_OK(RunOriginal());
    GPUSHARE_ASSERT_OK(workload_->Checksum(&original_));
    GPUSHARE_ASSERT_OK(workload_->ClearOutput());
  }

  Status RunOriginal() {
    Status status = workload_->ClearOutput();
    if (status.ok()) status = launcher_.LaunchOriginal(task_);
    if (status.ok()) status = launcher_.Wait();
    return status;
  }
  void ExpectSameBits(const char* form) {
    uint64_t checksum = 0;
    GPUSHARE_ASSERT_OK(workload_->Checksum(&checksum));
    EXPECT_EQ(checksum, original_) << form;
  }
  uint32_t Workers() const { return std::min(launcher_.FullWorkers(task_), task_.block_tasks()); }
  void RunWorkers(const gpushare_worker_launch& header, uint32_t workers, uint64_t block_tasks) {
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task_, header, workers));
    gpushare_worker_completion record = {};
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
    EXPECT_EQ(record.block_tasks_done, block_tasks);
  }

  static constexpr double kBlockTaskUs = 27;
  static constexpr uint32_t kSteps = 6;
  std::unique_ptr<Workload> workload_;
  FormTask task_;
  uint64_t original_ = 0;
};

TEST_P(FormsTest, OriginalIsRightByTheReference) {
  GPUSHARE_ASSERT_OK(RunOriginal());
  Verification verification;
  GPUSHARE_ASSERT_OK(workload_->Verify(kVerifySeconds, &verification));
  EXPECT_GT(verification.checked, 0U);
  EXPECT_EQ(verification.wrong, 0U) << verification.first_wrong;
  RecordProperty("error_max", std::to_string(verification.error_max));
}

// The reference would see an output that was never written.
TEST_P(FormsTest, ReferenceRefusesAnEmptyOutput) {
  Verification verification;
  GPUSHARE_ASSERT_OK(workload_->Verify(0.01, &verification));
  EXPECT_EQ(verification.wrong, verification.checked);
  uint64_t checksum = 0;
  GPUSHARE_ASSERT_OK(workload_->Checksum(&checksum));
  EXPECT_NE(checksum, original_);
}

TEST_P(FormsTest, OccupancyIsTheTables) {
  EXPECT_EQ(task_.variants.workers_per_sm, GetParam()->workers_per_sm);
  EXPECT_GE(task_.variants.original_blocks_per_sm, task_.variants.workers_per_sm);
  EXPECT_EQ(task_.variants.local_bytes, 0U) << "registers were spilled";
}

// Too small a split would keep some of the workers from the SM, and nothing else would tell.
TEST_P(FormsTest, TheSplitHasRoomForTheWorkers) {
  cudaFuncAttributes attributes = {};
  GPUSHARE_ASSERT_OK(
      CudaStatus(cudaFuncGetAttributes(&attributes, task_.variants.worker_symbol), "attributes"));
  cudaFuncAttributes of_slices = {};
  GPUSHARE_ASSERT_OK(
      CudaStatus(cudaFuncGetAttributes(&of_slices, task_.variants.slice_symbol), "attributes"));
  EXPECT_EQ(of_slices.preferredShmemCarveout, attributes.preferredShmemCarveout);
  int sm_bytes = 0;
  int reserved = 0;
  GPUSHARE_ASSERT_OK(CudaStatus(
      cudaDeviceGetAttribute(&sm_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0), "SM"));
  GPUSHARE_ASSERT_OK(CudaStatus(
      cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, 0), "reserved"));
  const uint64_t worker_bytes = task_.variants.static_shared_bytes +
                                task_.variants.dynamic_shared_bytes +
                                static_cast<uint64_t>(reserved);
  EXPECT_GE(
      static_cast<uint64_t>(attributes.preferredShmemCarveout) * static_cast<uint64_t>(sm_bytes),
      100 * worker_bytes * task_.variants.workers_per_sm);
  // And little more, where a body keeps L1.
  const std::string name = GetParam()->name;
  if (name == "stencil" || name == "spmv") {
    EXPECT_LE(attributes.preferredShmemCarveout, 4);
  }
}

TEST_P(FormsTest, WorkersGiveTheSameBits) {
  for (const uint32_t batch : {1U, 5U}) {
    GPUSHARE_ASSERT_OK(workload_->ClearOutput());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    gpushare_worker_launch header = launcher_.Header(task_);
    header.claim_batch = batch;
    RunWorkers(header, Workers(), task_.block_tasks());
    ExpectSameBits("workers");
  }
}

TEST_P(FormsTest, SlicesGiveTheSameBits) {
  uint32_t begin = 0;
  while (begin < task_.block_tasks()) {
    const uint32_t size = std::min(task_.block_tasks() - begin, 1 + RandomBelow(500));
    gpushare_worker_launch header = launcher_.Header(task_);
    header.block_begin = begin;
    header.block_count = size;
    GPUSHARE_ASSERT_OK(launcher_.LaunchSlice(task_, header));
    gpushare_worker_completion record = {};
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
    EXPECT_EQ(record.block_tasks_done, size);
    begin += size;
  }
  ExpectSameBits("slices");
}

// What runs the slices of a kernel that is registered without a slice function.
TEST_P(FormsTest, WorkersWithoutACounterGiveTheSameBits) {
  gpushare_worker_launch header = launcher_.Header(task_);
  header.counter = nullptr;
  RunWorkers(header, task_.block_tasks(), task_.block_tasks());
  ExpectSameBits("workers without a counter");
}

TEST_P(FormsTest, SmBoundWorkersGiveTheSameBits) {
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  gpushare_worker_launch header = launcher_.Header(task_);
  header.sm_first = 3;
  header.sm_count = static_cast<uint32_t>(launcher_.sms()) / 2;
  header.sm_workers = launcher_.sm_workers();
  header.workers_per_sm = 4;
  RunWorkers(header, launcher_.FullWorkers(task_), task_.block_tasks());
  ExpectSameBits("SM-bound workers");
}

TEST_P(FormsTest, EvictedAndResumedWorkersGiveTheSameBits) {
  int evicted_midway = 0;
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(workload_->ClearOutput());
    RunWithEvictions(task_, std::max(1U, Workers() / (1 + RandomBelow(4))), 3 * kBlockTaskUs, 5,
                     1 + RandomBelow(2));
    if (HasFatalFailure()) return;
    ExpectSameBits("evicted and resumed workers");
    if (launches_ > 1) ++evicted_midway;
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", seed " << FirstSeed();
  }
  EXPECT_TRUE(Small() || evicted_midway > 0) << "no launch was evicted, so nothing was tested";
}

TEST_P(FormsTest, PartialEvictionGivesTheSameBits) {
  GPUSHARE_ASSERT_OK(launcher_.BeginTask());
  const gpushare_worker_launch header = launcher_.Header(task_);
  GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task_, header, Workers()));
  BusyWaitUs(RandomBelow(30));
  GPUSHARE_ASSERT_OK(launcher_.Evict(header.epoch, 12));
  gpushare_worker_completion record = {};
  GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
  if (workload_->kernel().yields) {
    // Workers that left may have put block tasks on the list after the kept ones had looked.
    uint64_t done = record.block_tasks_done;
    while (done < task_.block_tasks()) {
      const gpushare_worker_launch rest = launcher_.Header(task_);
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task_, rest, Workers()));
      GPUSHARE_ASSERT_OK(launcher_.Finish(rest, &record));
      ASSERT_GT(record.block_tasks_done, 0U);
      done += record.block_tasks_done;
    }
    EXPECT_EQ(done, task_.block_tasks());
  } else {
    EXPECT_EQ(record.block_tasks_done, task_.block_tasks());
  }
  ExpectSameBits("partial eviction");
}

std::vector<const CatalogueKernel*> AllKernels() {
  std::vector<const CatalogueKernel*> all;
  for (const CatalogueKernel& kernel : Catalogue()) all.push_back(&kernel);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, FormsTest, testing::ValuesIn(AllKernels()),
                         [](const testing::TestParamInfo<const CatalogueKernel*>& kernel) {
                           return std::string(kernel.param->name);
                         });

}  // namespace
}  // namespace gpushare::kernels
