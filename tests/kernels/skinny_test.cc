// All bodies of gemm_skinny, by sm_90a's TMA with both rings and the portable one, with every
// number of rows: each element by a float64 sum, nothing behind the rows, slices and every number
// of workers the same bits. FormsTest (forms_test.cc) has the usual size of the body that the
// device runs.

#include <cuda_runtime_api.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/tensor/portable_workload.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/tensor/gemm_problem.h"
#include "kernels/tensor/gemm_skinny.h"
#include "tests/kernels/fixture.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kSeedA = 21;
constexpr uint32_t kSeedB = 22;
constexpr size_t kGuard = 32 * 1024;  // elements: more than 24 rows of the widest C

struct SkinnyBody {
  const char* name;
  int (*variants)(gpushare_kernel_variants*);
  bool only_sm90a;
};

class SkinnyBodyTest : public KernelTest, public testing::WithParamInterface<SkinnyBody> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    const Status runs = CheckWgmma();
    if (GetParam().only_sm90a && !runs.ok()) GTEST_SKIP() << runs.message;
    GPUSHARE_ASSERT_OK(CudaStatus(GetParam().variants(&task_.variants), GetParam().name));
  }

  void Make(int m, int n, int k) {
    a_ = std::make_unique<DeviceBuffer>();
    b_ = std::make_unique<DeviceBuffer>();
    c_ = std::make_unique<DeviceBuffer>();
    GPUSHARE_ASSERT_OK(a_->Allocate(Elements(m, k) * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(b_->Allocate(Elements(n, k) * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(c_->Allocate((Elements(m, n) + kGuard) * sizeof(uint16_t)));
    GPUSHARE_ASSERT_OK(FillPortableInputs(a_.get(), kSeedA));
    GPUSHARE_ASSERT_OK(FillPortableInputs(b_.get(), kSeedB));
    problem_ = {m, n, k, a_->data(), b_->data(), c_->data()};
    GPUSHARE_ASSERT_OK(MakeGemmSkinnyParams(problem_, &params_, &task_.grid));
    task_.params = params_.data();
  }

  // Two slices.
  void RunSlices(uint64_t* checksum) {
    GPUSHARE_ASSERT_OK(c_->FillPattern());
    gpushare_worker_launch header = launcher_.Header(task_);
    header.counter = nullptr;
    for (const uint32_t end : {task_.block_tasks() / 2, task_.block_tasks()}) {
      header.block_count = end - header.block_begin;
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task_, header, header.block_count));
      gpushare_worker_completion record = {};
      GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
      header.block_begin = end;
    }
    GPUSHARE_ASSERT_OK(c_->Checksum(checksum));
  }

  // By `workers` that claim two block tasks at once, or by the original grid where that is 0.
  void Run(uint32_t workers, uint64_t* checksum) {
    GPUSHARE_ASSERT_OK(c_->FillPattern());
    if (workers == 0) {
      GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(task_));
      GPUSHARE_ASSERT_OK(launcher_.Wait());
    } else {
      GPUSHARE_ASSERT_OK(launcher_.BeginTask());
      gpushare_worker_launch header = launcher_.Header(task_);
      header.claim_batch = 2;
      GPUSHARE_ASSERT_OK(launcher_.LaunchWorkers(task_, header, workers));
      gpushare_worker_completion record = {};
      GPUSHARE_ASSERT_OK(launcher_.Finish(header, &record));
      EXPECT_EQ(record.block_tasks_done, task_.block_tasks());
    }
    GPUSHARE_ASSERT_OK(c_->Checksum(checksum));
  }

  void ExpectRightEverywhere() {
    const auto n = static_cast<size_t>(problem_.n);
    std::vector<uint16_t> got(Elements(problem_.m, problem_.n) + kGuard);
    GPUSHARE_ASSERT_OK(c_->Read(0, got.size() * sizeof(uint16_t), got.data()));
    const double tolerance = PortableTolerance(static_cast<uint32_t>(problem_.k));
    for (int row = 0; row < problem_.m; ++row) {
      for (int column = 0; column < problem_.n; ++column) {
        const double value =
            FromBf16(got[static_cast<size_t>(row) * n + static_cast<size_t>(column)]);
        ASSERT_LE(std::abs(value - Sum(row, column)), tolerance) << row << ", " << column;
      }
    }
    for (size_t i = got.size() - kGuard; i < got.size(); ++i) {
      ASSERT_EQ(got[i], 0xFFFFU) << "behind the output";
    }
  }

  FormTask task_;

 private:
  static size_t Elements(int rows, int columns) {
    return static_cast<size_t>(rows) * static_cast<size_t>(columns);
  }

  double Sum(int row, int column) const {
    double sum = 0;
    for (int i = 0; i < problem_.k; ++i) {
      const auto a = static_cast<uint32_t>(row * problem_.k + i);
      const auto b = static_cast<uint32_t>(column * problem_.k + i);
      sum += static_cast<double>(PortableInput(kSeedA, a)) *
             static_cast<double>(PortableInput(kSeedB, b));
    }
    return sum;
  }

  std::unique_ptr<DeviceBuffer> a_, b_, c_;
  GemmProblem problem_;
  std::vector<unsigned char> params_;
};

TEST_P(SkinnyBodyTest, EveryNumberOfRowsIsRight) {
  constexpr auto kStep = static_cast<int>(kSkinnyKMultiple);
  for (const int m : {8, 16, 32}) {
    // A part of a stage; whole stages and a part, which go around the ring unevenly.
    for (const int k : {kStep, 7 * kStep, 53 * kStep}) {
      SCOPED_TRACE(std::to_string(m) + " rows, k = " + std::to_string(k));
      Make(m, 5 * static_cast<int>(kSkinnyColumns), k);
      if (HasFatalFailure()) return;
      uint64_t original = 0;
      Run(0, &original);
      if (HasFatalFailure()) return;
      ExpectRightEverywhere();
      if (HasFailure()) return;
      // Fewer workers than block tasks: phases of the barriers go on over several.
      for (const uint32_t workers : {1U, 2U, 5U}) {
        uint64_t checksum = 0;
        Run(workers, &checksum);
        if (HasFatalFailure()) return;
        EXPECT_EQ(checksum, original) << workers << " workers";
      }
      uint64_t sliced = 0;
      RunSlices(&sliced);
      if (HasFatalFailure()) return;
      EXPECT_EQ(sliced, original) << "slices";
    }
  }
}

// Stages are freed and written again many times; a read that comes too late gives other bits.
TEST_P(SkinnyBodyTest, RepeatsGiveTheSameBits) {
  Make(32, 40 * static_cast<int>(kSkinnyColumns), 2048);
  if (HasFatalFailure()) return;
  uint64_t original = 0;
  Run(0, &original);
  for (int repeat = 0; repeat < Repeats() && !HasFatalFailure(); ++repeat) {
    uint64_t checksum = 0;
    Run(1 + RandomBelow(40), &checksum);
    if (HasFatalFailure()) return;
    ASSERT_EQ(checksum, original) << "repeat " << repeat << ", seed " << FirstSeed();
  }
}

class SkinnyRoomTest : public KernelTest {};

// What the compact form is for. Registers are given to warps, to each thread a multiple of eight,
// and a quarter of an SM has its own.
TEST_F(SkinnyRoomTest, ACompactWorkerFitsBesideARoomyOne) {
  const Status runs = CheckWgmma();
  if (!runs.ok()) GTEST_SKIP() << runs.message;
  gpushare_kernel_variants roomy = {};
  gpushare_kernel_variants compact = {};
  GPUSHARE_ASSERT_OK(CudaStatus(GemmRoomyVariants(&roomy), "gemm_roomy"));
  GPUSHARE_ASSERT_OK(CudaStatus(GemmSkinnyCompactVariants(&compact), "gemm_skinny_compact"));
  constexpr uint32_t kQuarters = 4;
  constexpr uint32_t kQuarterRegisters = 16384;
  const auto registers = [](const gpushare_kernel_variants& kernel) {
    const uint32_t warps = kernel.threads_per_block / 32;
    return (warps + kQuarters - 1) / kQuarters * 32 * ((kernel.worker_registers + 7) / 8 * 8);
  };
  EXPECT_LE(registers(roomy) + registers(compact), kQuarterRegisters);
  int reserved = 0;
  int has = 0;
  GPUSHARE_ASSERT_OK(CudaStatus(
      cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, 0), "reserved"));
  GPUSHARE_ASSERT_OK(CudaStatus(
      cudaDeviceGetAttribute(&has, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0), "shared"));
  const auto shared = [reserved](const gpushare_kernel_variants& kernel) {
    return kernel.static_shared_bytes + kernel.dynamic_shared_bytes +
           static_cast<uint32_t>(reserved);
  };
  EXPECT_LE(shared(roomy) + shared(compact), static_cast<uint32_t>(has));
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, SkinnyBodyTest,
    testing::Values(SkinnyBody{"tma", gpushare_gemm_skinny_variants, true},
                    SkinnyBody{"tma_compact", gpushare_gemm_skinny_compact_variants, true},
                    SkinnyBody{"portable", gpushare_gemm_skinny_portable_variants, false}),
    [](const testing::TestParamInfo<SkinnyBody>& body) { return std::string(body.param.name); });

}  // namespace
}  // namespace gpushare::kernels
