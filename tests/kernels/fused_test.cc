// Fused kernels: both parts give the bits of their original grids; either part is evicted, confined
// or ended while the other runs on, and its block tasks go on elsewhere; none is lost or repeated.
// With kernels that count, then with every fused kernel of the catalogue.

#include <cuda_runtime_api.h>
#include <gpushare/device/fused_variants.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/fused/fused_catalogue.h"
#include "tests/kernels/fixture.h"

namespace gpushare::kernels {

Status CountTask::ZeroBuffer(DeviceBuffer* buffer) {
  return CudaStatus(cudaMemset(buffer->data(), 0, buffer->bytes()), "cudaMemset");
}

namespace {

constexpr int kTensorPart = 0;
constexpr int kCudaPart = 1;
constexpr int kParts = 2;
constexpr double kRecordLimitS = 300;  // far above any launch here, also under a sanitizer

// The fused launch is on launcher_'s stream, each part has a launcher of its own.
class FusedTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    for (FormLauncher& part : part_launchers_) GPUSHARE_ASSERT_OK(part.Init());
  }

  // As many as fit the device, and no more than have something to do.
  uint32_t Blocks() const {
    const uint32_t fit = fused_.blocks_per_sm * static_cast<uint32_t>(launcher_.sms());
    return std::max(1U, std::min(fit, DirectBlocks()));
  }
  uint32_t DirectBlocks() const {
    const auto blocks = [](uint32_t block_tasks, uint32_t copies) {
      return (block_tasks + copies - 1) / copies;
    };
    return std::max(blocks(tasks_[kTensorPart].block_tasks(), fused_.tensor_blocks),
                    blocks(tasks_[kCudaPart].block_tasks(), fused_.cuda_blocks));
  }

  void Begin() {
    for (int part = 0; part < kParts; ++part) {
      GPUSHARE_ASSERT_OK(part_launchers_[part].BeginTask());
      parts_[part] = {part_launchers_[part].Header(tasks_[part]), tasks_[part].params};
    }
  }
  void Launch(uint32_t blocks) {
    GPUSHARE_ASSERT_OK(
        launcher_.LaunchFused(fused_, parts_[kTensorPart], parts_[kCudaPart], blocks));
  }
  void AwaitPart(int part, gpushare_worker_completion* record) {
    GPUSHARE_ASSERT_OK(
        part_launchers_[part].AwaitRecord(parts_[part].header, kRecordLimitS, record));
  }
  // The part's own workers execute what the fused launch left, beside it.
  void ResumePart(int part, const gpushare_worker_completion& left_by) {
    uint64_t done = left_by.block_tasks_done;
    ASSERT_EQ(left_by.block_tasks_left, tasks_[part].block_tasks() - done) << "part " << part;
    if (left_by.block_tasks_left == 0) return;
    ++resumed_;
    parts_[part].header = part_launchers_[part].Header(tasks_[part]);
    const uint32_t workers = part_launchers_[part].FullWorkers(tasks_[part]);
    GPUSHARE_ASSERT_OK(part_launchers_[part].LaunchWorkers(
        tasks_[part], parts_[part].header, std::min(workers, tasks_[part].block_tasks())));
    gpushare_worker_completion record = {};
    AwaitPart(part, &record);
    done += record.block_tasks_done;
    EXPECT_EQ(done, tasks_[part].block_tasks()) << "part " << part;
    EXPECT_EQ(record.block_tasks_left, 0U) << "part " << part;
  }
  // The launch has ended, and this part executed all of its block tasks in it.
  void ExpectWhole(int part) {
    gpushare_worker_completion record = {};
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    GPUSHARE_ASSERT_OK(part_launchers_[part].Finish(parts_[part].header, &record));
    EXPECT_EQ(record.block_tasks_done, tasks_[part].block_tasks()) << "part " << part;
    EXPECT_EQ(record.block_tasks_left, 0U) << "part " << part;
  }
  // Also checks that the last worker left the scratch as it was.
  void ExpectEnded(int part) {
    gpushare_worker_completion record = {};
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    GPUSHARE_ASSERT_OK(part_launchers_[part].Finish(parts_[part].header, &record));
  }

  void RunWhole(uint32_t claim_batch) {
    Begin();
    for (FusedPart& part : parts_) part.header.claim_batch = claim_batch;
    Launch(Blocks());
    for (int part = 0; part < kParts; ++part) ExpectWhole(part);
  }
  // One launch; this part leaves at a random moment of the first window_us.
  void RunEvicted(int part, double window_us, uint32_t workers_to_keep) {
    Begin();
    Launch(Blocks());
    BusyWaitUs(window_us * RandomBelow(1000) / 1000);
    GPUSHARE_ASSERT_OK(part_launchers_[part].Evict(parts_[part].header.epoch, workers_to_keep));
    gpushare_worker_completion record = {};
    AwaitPart(part, &record);
    if (HasFatalFailure()) return;
    // Workers that stay execute everything, but for what others put on the yield list too late.
    if (workers_to_keep > 0 && tasks_[part].variants.yields == 0) {
      EXPECT_EQ(record.block_tasks_left, 0U);
    }
    ResumePart(part, record);
    ExpectWhole(1 - part);
    ExpectEnded(part);
  }

  FormLauncher part_launchers_[kParts];
  FormTask tasks_[kParts];
  FusedPart parts_[kParts];
  gpushare_fused_variants fused_ = {};
  int resumed_ = 0;
};

// What a block task of a counting kernel writes.
enum class Results : uint8_t { kNone, kShared, kLargeShared, kHalves, kSteps };

constexpr uint32_t kSteps = 4;

uint32_t ResultOf(Results kind, uint32_t block_task, uint32_t thread) {
  switch (kind) {
    case Results::kNone:
      return 0;
    case Results::kShared:
      return block_task * 7919U + 255 - thread;
    case Results::kLargeShared:
      return block_task * 7919U + 16383 - thread;
    case Results::kHalves:
      return block_task * 7919U + thread / 128 * 128 + 127 - thread % 128;
    case Results::kSteps:
      return StepsResult(block_task, thread, kSteps);
  }
  return 0;
}

struct CountingPart {
  int (*variants)(gpushare_kernel_variants*);
  Results results;
};

struct CountingPair {
  const char* name;
  int (*fused)(gpushare_fused_variants*);
  CountingPart parts[kParts];
};

constexpr CountingPart kCount = {gpushare_test_count_variants, Results::kNone};
constexpr CountingPart kShared = {gpushare_test_shared_variants, Results::kShared};
constexpr CountingPart kLarge = {gpushare_test_large_shared_variants, Results::kLargeShared};
constexpr CountingPart kExtra = {gpushare_test_extra_variants, Results::kHalves};
constexpr CountingPart kYielding = {gpushare_test_steps_variants, Results::kSteps};

constexpr CountingPair kFusedCount = {
    "count", gpushare_test_fused_count_variants, {kCount, kShared}};
constexpr CountingPair kFusedQuota = {
    "quota", gpushare_test_fused_quota_variants, {kExtra, kCount}};
constexpr CountingPair kFusedDirect = {
    "direct", gpushare_test_fused_direct_variants, {kCount, kShared}};

class CountingTest : public FusedTest {
 protected:
  void Make(const CountingPair& pair) {
    pair_ = pair;
    GPUSHARE_ASSERT_OK(CudaStatus(pair.fused(&fused_), pair.name));
    if (fused_.blocks_per_sm == 0) GTEST_SKIP() << "This device cannot run the fused kernel.";
    // Neither is a multiple of any number of workers, and they differ.
    const Grid grids[kParts] = {Small() ? Grid{61, 1, 1} : Grid{4001, 1, 1},
                                Small() ? Grid{7, 11, 1} : Grid{71, 67, 1}};
    for (int part = 0; part < kParts; ++part) {
      counts_[part] = std::make_unique<CountTask>();
      GPUSHARE_ASSERT_OK(
          counts_[part]->Make(pair.parts[part].variants, grids[part], kBlocksMax, launcher_.sms()));
      counts_[part]->params.spin_ns = kSpinNs;
      counts_[part]->params.steps = Times(part);
      tasks_[part] = counts_[part]->task;
    }
  }
  uint32_t Times(int part) const {
    return pair_.parts[part].results == Results::kSteps ? kSteps : 1;
  }
  void Clear() {
    for (auto& count : counts_) GPUSHARE_ASSERT_OK(count->Clear());
  }
  void ExpectEachOnce(int part) {
    counts_[part]->ExpectEachExecuted(Times(part));
    const Results kind = pair_.parts[part].results;
    if (kind == Results::kNone) return;
    const std::vector<uint32_t> words = CountTask::Words(counts_[part]->results);
    for (uint32_t i = 0; i < words.size(); ++i) {
      ASSERT_EQ(words[i], ResultOf(kind, i / 256, i % 256)) << "part " << part << ", word " << i;
    }
  }
  void ExpectAllOnce() {
    for (int part = 0; part < kParts; ++part) ExpectEachOnce(part);
  }
  // A little more than a launch takes.
  double WindowUs() const {
    const double tasks = std::max(tasks_[0].block_tasks() * Times(0), tasks_[1].block_tasks());
    return 1.3e-3 * kSpinNs * tasks / Blocks();
  }

  static constexpr uint32_t kBlocksMax = 8192;  // by_worker of count has an entry a block
  static constexpr uint64_t kSpinNs = 4000;
  CountingPair pair_ = kFusedCount;
  std::unique_ptr<CountTask> counts_[kParts];
};

class CountingPairTest : public CountingTest, public testing::WithParamInterface<CountingPair> {
 protected:
  void SetUp() override {
    FusedTest::SetUp();
    if (IsSkipped()) return;
    Make(GetParam());
  }
};

TEST_P(CountingPairTest, BothPartsExecuteEachBlockTaskOnce) {
  for (const uint32_t batch : {1U, 3U}) {
    Clear();
    RunWhole(batch);
    ExpectAllOnce();
  }
}

TEST_P(CountingPairTest, EitherPartLeavesAndGoesOnElsewhere) {
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    for (int part = 0; part < kParts; ++part) {
      Clear();
      RunEvicted(part, WindowUs(), 0);
      if (HasFatalFailure()) return;
      ExpectAllOnce();
      ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", part " << part << ", seed "
                                 << FirstSeed();
    }
  }
  EXPECT_TRUE(Small() || resumed_ > 0) << "no part was evicted midway, so nothing was tested";
}

TEST_P(CountingPairTest, BothPartsLeaveAtOnce) {
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    Clear();
    Begin();
    Launch(Blocks());
    BusyWaitUs(WindowUs() / 3);
    gpushare_worker_completion records[kParts] = {};
    for (int part = 0; part < kParts; ++part) {
      GPUSHARE_ASSERT_OK(part_launchers_[part].Evict(parts_[part].header.epoch, 0));
    }
    for (int part = 0; part < kParts; ++part) AwaitPart(part, &records[part]);
    if (HasFatalFailure()) return;
    for (int part = 0; part < kParts; ++part) ResumePart(part, records[part]);
    for (int part = 0; part < kParts; ++part) ExpectEnded(part);
    ExpectAllOnce();
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat;
  }
}

TEST_P(CountingPairTest, WorkersToKeepAreAQuotaOfOnePart) {
  for (int part = 0; part < kParts; ++part) {
    Clear();
    RunEvicted(part, WindowUs() / 4, 40);
    if (HasFatalFailure()) return;
    ExpectAllOnce();
  }
}

TEST_P(CountingPairTest, APartWithoutBlockTasksLeavesTheOtherAlone) {
  for (int part = 0; part < kParts; ++part) {
    Clear();
    Begin();
    parts_[1 - part].header = {};
    Launch(Blocks());
    ExpectWhole(part);
    if (HasFatalFailure()) return;
    ExpectEachOnce(part);
    const std::vector<uint32_t> others = CountTask::Words(counts_[1 - part]->executions);
    EXPECT_EQ(std::count(others.begin(), others.end(), 0U), others.size());
  }
}

// The part's counter is past the end already: it reports its end, and nothing else.
TEST_P(CountingPairTest, AFinishedPartEndsAtOnce) {
  Clear();
  RunWhole(1);
  const gpushare_worker_launch again = part_launchers_[kTensorPart].Header(tasks_[kTensorPart]);
  GPUSHARE_ASSERT_OK(part_launchers_[kCudaPart].BeginTask());
  GPUSHARE_ASSERT_OK(counts_[kCudaPart]->Clear());
  parts_[kTensorPart].header = again;
  parts_[kCudaPart].header = part_launchers_[kCudaPart].Header(tasks_[kCudaPart]);
  Launch(Blocks());
  ExpectWhole(kCudaPart);
  gpushare_worker_completion record = {};
  GPUSHARE_ASSERT_OK(part_launchers_[kTensorPart].Finish(again, &record));
  EXPECT_EQ(record.block_tasks_done, 0U);
  EXPECT_EQ(record.block_tasks_left, 0U);
  ExpectAllOnce();
}

TEST_P(CountingPairTest, TheLeaderRelaysBothWords) {
  for (int part = 0; part < kParts; ++part) {
    Clear();
    Begin();
    for (int each = 0; each < kParts; ++each) {
      part_launchers_[each].UseLeader(&parts_[each].header);
    }
    // A part without a host word beside one that has it.
    if (part == kTensorPart) parts_[kCudaPart].header.host_eviction_word = nullptr;
    Launch(Blocks());             // with block 0, the leader, no more than fit
    BusyWaitUs(WindowUs() / 12);  // the shortest part has more than half of the window to go
    part_launchers_[part].EvictByLeader(parts_[part].header.epoch, 0);
    gpushare_worker_completion record = {};
    AwaitPart(part, &record);
    if (HasFatalFailure()) return;
    EXPECT_TRUE(Small() || record.block_tasks_left > 0) << "the word came too late, or never";
    ResumePart(part, record);
    ExpectWhole(1 - part);
    ExpectEnded(part);
    ExpectAllOnce();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, CountingPairTest,
    testing::Values(kFusedCount, kFusedQuota,
                    CountingPair{"large", gpushare_test_fused_large_variants, {kShared, kLarge}},
                    CountingPair{"steps", gpushare_test_fused_steps_variants, {kYielding, kExtra}},
                    CountingPair{"extra", gpushare_test_fused_extra_variants, {kExtra, kExtra}},
                    CountingPair{
                        "registers", gpushare_test_fused_registers_variants, {kCount, kShared}}),
    [](const testing::TestParamInfo<CountingPair>& pair) { return std::string(pair.param.name); });

// Worker i of a part is copy i % copies of block i / copies, so a quota of 7 is these blocks.
TEST_F(CountingTest, AQuotaKeepsThePartsFirstWorkers) {
  Make(kFusedQuota);
  if (IsSkipped()) return;
  Begin();
  GPUSHARE_ASSERT_OK(part_launchers_[kCudaPart].Evict(parts_[kCudaPart].header.epoch, 7));
  GPUSHARE_ASSERT_OK(part_launchers_[kCudaPart].Wait());
  Launch(Blocks());
  for (int part = 0; part < kParts; ++part) ExpectWhole(part);
  ExpectAllOnce();
  const std::vector<uint32_t> by_block = CountTask::Words(counts_[kCudaPart]->by_worker);
  for (uint32_t block = 0; block < by_block.size(); ++block) {
    EXPECT_EQ(by_block[block] > 0, block < 4) << "block " << block;
  }
}

TEST_F(CountingTest, DirectFusionExecutesEachBlockTaskOnce) {
  Make(kFusedDirect);
  if (IsSkipped()) return;
  Begin();
  Launch(DirectBlocks());
  GPUSHARE_ASSERT_OK(launcher_.Wait());
  ExpectAllOnce();
}

TEST_F(CountingTest, AVariantThatNoDeviceRunsSaysSo) {
  gpushare_fused_variants variants = {};
  GPUSHARE_ASSERT_OK(CudaStatus(gpushare_test_fused_too_wide_variants(&variants), "NAME_variants"));
  EXPECT_EQ(variants.blocks_per_sm, 0U);
  EXPECT_EQ(variants.function, nullptr);
  EXPECT_EQ(variants.threads_per_block, 1280U);
  EXPECT_FALSE(launcher_.LaunchFused(variants, {}, {}, 1).ok());
}

// setmaxnreg waits for ever where the parts take more than they give.
TEST_F(CountingTest, MovedRegistersAddUp) {
  gpushare_fused_variants variants = {};
  GPUSHARE_ASSERT_OK(
      CudaStatus(gpushare_test_fused_registers_variants(&variants), "NAME_variants"));
  if (variants.blocks_per_sm == 0) GTEST_SKIP() << "Registers move on compute capability 9.0a.";
  EXPECT_EQ(variants.registers, 128U);
  EXPECT_LE(256 * variants.tensor_registers + 256 * variants.cuda_registers,
            variants.threads_per_block * variants.registers);
}

class FusedCatalogueTest : public FusedTest,
                           public testing::WithParamInterface<const FusedCatalogueKernel*> {
 protected:
  void SetUp() override {
    FusedTest::SetUp();
    if (IsSkipped()) return;
    const FusedCatalogueKernel& row = *GetParam();
    GPUSHARE_ASSERT_OK(CudaStatus(row.variants(&fused_), row.name));
    if (fused_.blocks_per_sm == 0) GTEST_SKIP() << "This device cannot run " << row.name << ".";
    MakePart(kTensorPart, row.tensor_name, 3 * row.tensor_blocks);
    if (HasFatalFailure()) return;
    MakePart(kCudaPart, row.cuda_name, 6 * row.cuda_blocks);
    if (HasFatalFailure()) return;
    EXPECT_EQ(fused_.tensor_params_bytes, workloads_[kTensorPart]->params_bytes());
    EXPECT_EQ(fused_.cuda_params_bytes, workloads_[kCudaPart]->params_bytes());
  }

  void MakePart(int part, const char* name, uint32_t rounds) {
    const CatalogueKernel* const kernel = FindKernel(name);
    ASSERT_NE(kernel, nullptr) << name;
    WorkloadOptions options;
    options.sms = launcher_.sms();
    options.block_tasks = Small() ? 72 : rounds * static_cast<uint32_t>(options.sms) + 88;
    options.block_task_us = Small() ? 1 : kBlockTaskUs;
    options.seed = FirstSeed();
    GPUSHARE_ASSERT_OK(MakeWorkload(*kernel, options, &workloads_[part]));
    FormTask& task = tasks_[part];
    GPUSHARE_ASSERT_OK(CudaStatus(kernel->variants(&task.variants), name));
    task.params = workloads_[part]->params();
    task.grid = workloads_[part]->grid();
    GPUSHARE_ASSERT_OK(workloads_[part]->ClearOutput());
    GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(task));
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    GPUSHARE_ASSERT_OK(workloads_[part]->Checksum(&originals_[part]));
  }
  void Clear() {
    for (auto& workload : workloads_) GPUSHARE_ASSERT_OK(workload->ClearOutput());
  }
  void ExpectSameBits() {
    for (int part = 0; part < kParts; ++part) {
      uint64_t checksum = 0;
      GPUSHARE_ASSERT_OK(workloads_[part]->Checksum(&checksum));
      EXPECT_EQ(checksum, originals_[part]) << "part " << part;
    }
  }
  bool IsDirect() const { return fused_.form == GPUSHARE_FUSED_DIRECT; }

  static constexpr double kBlockTaskUs = 27;
  static constexpr double kWindowUs = 3 * kBlockTaskUs;
  std::unique_ptr<Workload> workloads_[kParts];
  uint64_t originals_[kParts] = {};
};

TEST_P(FusedCatalogueTest, BothPartsGiveTheirOriginalBits) {
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    Clear();
    if (IsDirect()) {
      Begin();
      Launch(DirectBlocks());
      GPUSHARE_ASSERT_OK(launcher_.Wait());
    } else {
      RunWhole(1 + static_cast<uint32_t>(repeat) % 2);
    }
    ExpectSameBits();
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat;
  }
}

TEST_P(FusedCatalogueTest, EitherPartLeavesAndGoesOnElsewhere) {
  if (IsDirect()) GTEST_SKIP() << "Direct fusion is not evicted.";
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    const int part = repeat % 2 == 0 ? kCudaPart : kTensorPart;
    Clear();
    RunEvicted(part, kWindowUs, 0);
    if (HasFatalFailure()) return;
    ExpectSameBits();
    ASSERT_FALSE(HasFailure()) << "repeat " << repeat << ", part " << part << ", seed "
                               << FirstSeed();
  }
  EXPECT_TRUE(Small() || resumed_ > 0) << "no part was evicted midway, so nothing was tested";
}

TEST_P(FusedCatalogueTest, AQuotaOfTheCudaPartLosesNothing) {
  if (IsDirect()) GTEST_SKIP() << "Direct fusion has no quota.";
  Clear();
  RunEvicted(kCudaPart, kWindowUs / 3, 24);
  if (HasFatalFailure()) return;
  ExpectSameBits();
}

std::vector<const FusedCatalogueKernel*> AllFused() {
  std::vector<const FusedCatalogueKernel*> all;
  for (const FusedCatalogueKernel& kernel : FusedCatalogue()) all.push_back(&kernel);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, FusedCatalogueTest, testing::ValuesIn(AllFused()),
                         [](const testing::TestParamInfo<const FusedCatalogueKernel*>& kernel) {
                           return std::string(kernel.param->name);
                         });

class FusedCountTest : public KernelTest {};

// A kernel whose pairs are all dropped is not silently missing.
TEST_F(FusedCountTest, TensorKernelsRunWithTwelvePartners) {
  cudaDeviceProp device = {};
  GPUSHARE_ASSERT_OK(CudaStatus(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties"));
  std::vector<const char*> tensors = {"gemm_mma"};
  if (device.major == 9) tensors.insert(tensors.end(), {"gemm_roomy", "gemm_skinny"});
  for (const char* tensor : tensors) {
    int partners = 0;
    for (const FusedCatalogueKernel& row : FusedCatalogue()) {
      if (std::string(row.tensor_name) != tensor || row.form != GPUSHARE_FUSED_PLAIN) continue;
      if (row.tensor_blocks != 1 || row.cuda_blocks != 1) continue;
      gpushare_fused_variants variants = {};
      GPUSHARE_ASSERT_OK(CudaStatus(row.variants(&variants), row.name));
      if (variants.blocks_per_sm > 0) ++partners;
    }
    EXPECT_GE(partners, 12) << tensor;
  }
}

// Two kernels with TMA in one block, which take nearly all of an SM.
TEST_F(FusedCountTest, DecodeFitsAFusedBlockWithTheRoomyGemm) {
  cudaDeviceProp device = {};
  GPUSHARE_ASSERT_OK(CudaStatus(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties"));
  if (device.major != 9) GTEST_SKIP() << "Both parts need compute capability 9.0a.";
  const FusedCatalogueKernel* const row = FindFused("gemm_roomy", "gemm_skinny_compact", {});
  ASSERT_NE(row, nullptr);
  gpushare_fused_variants variants = {};
  GPUSHARE_ASSERT_OK(CudaStatus(row->variants(&variants), row->name));
  EXPECT_EQ(variants.blocks_per_sm, 1U);
  EXPECT_EQ(variants.local_bytes, 0U) << "registers spill";
}

}  // namespace
}  // namespace gpushare::kernels
