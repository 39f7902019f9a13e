// The wgmma GEMMs on sizes that are no whole tiles, with several tiles a block task, evicted and
// resumed, and repeated: every element by a float64 sum, every form and run the same bits.
// FormsTest (forms_test.cc) has the usual sizes.

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmarks/kernels/tensor/portable_workload.h"
#include "kernels/tensor/gemm_wgmma.h"
#include "tests/kernels/fixture.h"

namespace gpushare::kernels {
namespace {

struct Form {
  const char* name;
  int (*variants)(gpushare_kernel_variants*);
  GemmTileShape shape;
};

constexpr uint32_t kSeedA = 11;
constexpr uint32_t kSeedB = 12;

class WgmmaTest : public KernelTest, public testing::WithParamInterface<Form> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    const Status status = CheckWgmma();
    if (!status.ok()) GTEST_SKIP() << status.message;
    GPUSHARE_ASSERT_OK(CudaStatus(GetParam().variants(&task_.variants), GetParam().name));
  }

  void Make(int m, int n, int k, uint32_t tiles_per_task) {
    a_ = std::make_unique<DeviceBuffer>();
    b_ = std::make_unique<DeviceBuffer>();
    c_ = std::make_unique<DeviceBuffer>();
    m_ = m;
    n_ = n;
    k_ = k;
    GPUSHARE_ASSERT_OK(a_->Allocate(Elements(m, k) * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(b_->Allocate(Elements(n, k) * sizeof(uint16_t)));
    // A guard behind the output: stores that are not cut off are seen.
    GPUSHARE_ASSERT_OK(c_->Allocate((Elements(m, n) + kGuard) * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(FillPortableInputs(a_.get(), kSeedA));
    GPUSHARE_ASSERT_OK(FillPortableInputs(b_.get(), kSeedB));
    GPUSHARE_ASSERT_OK(c_->FillPattern());
    const GemmProblem problem = {m, n, k, a_->data(), b_->data(), c_->data()};
    GPUSHARE_ASSERT_OK(
        MakeWgmmaParams(GetParam().shape, problem, tiles_per_task, 0, &params_, &task_.grid));
    task_.params = &params_;
  }

  void RunOriginal(uint64_t* checksum) {
    GPUSHARE_ASSERT_OK(c_->FillPattern());
    GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(task_));
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    GPUSHARE_ASSERT_OK(c_->Checksum(checksum));
  }

  void RunWorkers(uint32_t workers, uint64_t* checksum) {
    GPUSHARE_ASSERT_OK(c_->FillPattern());
    GPUSHARE_ASSERT_OK(launcher_.BeginTask());
    const gpushare_worker_launch header = launcher_.Header(task_);
    GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task_, header, workers));
    gpushare_worker_completion record = {};
    GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
    EXPECT_EQ(record.block_tasks_done, task_.block_tasks());
    GPUSHARE_ASSERT_OK(c_->Checksum(checksum));
  }

  double Sum(int row, int column) const {
    double sum = 0;
    for (int i = 0; i < k_; ++i) {
      sum += static_cast<double>(PortableInput(kSeedA, static_cast<uint32_t>(row * k_ + i))) *
             static_cast<double>(PortableInput(kSeedB, static_cast<uint32_t>(column * k_ + i)));
    }
    return sum;
  }

  void ExpectRightEverywhere() {
    std::vector<uint16_t> got(Elements(m_, n_) + kGuard);
    GPUSHARE_ASSERT_OK(c_->Read(0, got.size() * sizeof(uint16_t), got.data()));
    const double tolerance = PortableTolerance(static_cast<uint32_t>(k_));
    int wrong = 0;
    for (int row = 0; row < m_ && wrong < kWrongShown; ++row) {
      for (int column = 0; column < n_ && wrong < kWrongShown; ++column) {
        const double value = FromBf16(got[Elements(row, n_) + static_cast<size_t>(column)]);
        const double expected = Sum(row, column);
        const bool right = std::abs(value - expected) <= tolerance;
        EXPECT_TRUE(right) << row << ", " << column << ": " << value << " for " << expected;
        if (!right) ++wrong;
      }
    }
    for (size_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(got[Elements(m_, n_) + i], 0xFFFFU) << "behind the output";
    }
  }

  static size_t Elements(int rows, int columns) {
    return static_cast<size_t>(rows) * static_cast<size_t>(columns);
  }

  static constexpr size_t kGuard = 4096;
  static constexpr int kWrongShown = 8;
  FormTask task_;
  alignas(64) GemmWgmmaParams params_ = {};
  std::unique_ptr<DeviceBuffer> a_, b_, c_;
  int m_ = 0;
  int n_ = 0;
  int k_ = 0;
};

TEST_P(WgmmaTest, SizesThatAreNoWholeTilesAreRight) {
  struct Size {
    int m, n, k;
  };
  for (const Size& size : {Size{128, 256, 64}, Size{1, 8, 8}, Size{300, 520, 72},
                           Size{129, 264, 200}, Size{127, 248, 1000}, Size{640, 768, 128}}) {
    for (const uint32_t tiles_per_task : {1U, 2U, 3U}) {
      SCOPED_TRACE(std::to_string(size.m) + " x " + std::to_string(size.n) + " x " +
                   std::to_string(size.k) + ", " + std::to_string(tiles_per_task) + " tiles");
      Make(size.m, size.n, size.k, tiles_per_task);
      if (HasFatalFailure()) return;
      uint64_t original = 0;
      uint64_t workers = 0;
      RunOriginal(&original);
      if (HasFatalFailure()) return;
      ExpectRightEverywhere();
      if (HasFailure()) return;
      // Two workers: phases of the barriers go on over several block tasks.
      RunWorkers(2, &workers);
      EXPECT_EQ(original, workers);
      if (HasFailure()) return;
    }
  }
}

TEST_P(WgmmaTest, TilesOfOneBlockTaskAndOfSeveralAreTheSameBits) {
  uint64_t first = 0;
  for (const uint32_t tiles_per_task : {1U, 2U, 5U, 1000U}) {
    Make(1000, 1304, 520, tiles_per_task);
    if (HasFatalFailure()) return;
    uint64_t checksum = 0;
    RunWorkers(launcher_.FullWorkers(task_), &checksum);
    if (HasFatalFailure()) return;
    if (tiles_per_task == 1) first = checksum;
    EXPECT_EQ(checksum, first) << tiles_per_task << " tiles a block task";
  }
}

TEST_P(WgmmaTest, EveryRunHasTheSameBits) {
  Make(Small() ? 512 : 2048, Small() ? 768 : 2304, 1024, 2);
  if (HasFatalFailure()) return;
  uint64_t expected = 0;
  RunOriginal(&expected);
  if (HasFatalFailure()) return;
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    uint64_t checksum = 0;
    RunOriginal(&checksum);
    if (HasFatalFailure()) return;
    ASSERT_EQ(checksum, expected) << "original, repeat " << repeat;
    RunWorkers(1 + RandomBelow(launcher_.FullWorkers(task_)), &checksum);
    if (HasFatalFailure()) return;
    ASSERT_EQ(checksum, expected) << "workers, repeat " << repeat;
  }
}

TEST_P(WgmmaTest, EvictedAndResumedRunsHaveTheSameBits) {
  Make(Small() ? 512 : 4096, Small() ? 768 : 4096, 1024, 1);
  if (HasFatalFailure()) return;
  uint64_t expected = 0;
  RunOriginal(&expected);
  if (HasFatalFailure()) return;
  for (int repeat = 0; repeat < Repeats(); ++repeat) {
    GPUSHARE_ASSERT_OK(c_->FillPattern());
    RunWithEvictions(task_, launcher_.FullWorkers(task_), 60, 4, 1);
    if (HasFatalFailure()) return;
    uint64_t checksum = 0;
    GPUSHARE_ASSERT_OK(c_->Checksum(&checksum));
    ASSERT_EQ(checksum, expected) << "repeat " << repeat << ", seed " << FirstSeed();
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, WgmmaTest,
                         testing::Values(Form{"gemm_wgmma", GemmWgmmaVariants, kGemmWgmmaTile},
                                         Form{"gemm_roomy", GemmRoomyVariants, kGemmRoomyTile}),
                         [](const testing::TestParamInfo<Form>& form) {
                           return std::string(form.param.name);
                         });

}  // namespace
}  // namespace gpushare::kernels
