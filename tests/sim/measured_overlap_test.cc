// hardware.md's overlap tables: pairs resident on the same SMs, fused pairs, cuBLASLt GEMMs that
// leave no room, and the roomy GEMM. Tolerance: 6 percentage points of the serial time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/sim/measured_rows.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

constexpr double kPoints = 0.06;
constexpr double kSoloNs = 5e6;

class OverlapTest : public testing::TestWithParam<Tier> {
 protected:
  // A worker launch of `kernel` that takes `solo_ns` alone with all of its workers.
  static core::LaunchRequest Sized(core::LaneIndex lane, const char* kernel, double solo_ns,
                                   uint64_t id) {
    const core::KernelDesc& desc = Kernel(kernel);
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{id};
    request.parts[0].lane = lane;
    request.form = core::Form::kWorkers;
    request.parts[0].counter =
        static_cast<int32_t>(request.parts[0].launch.value % core::kMaxCounters);
    request.parts[0].reset_counter = true;
    request.parts[0].work.kernel = &desc;
    request.parts[0].block_count =
        std::llround(solo_ns / static_cast<double>(desc.simulation.block_task_ns) * 132 *
                     desc.resources.workers_per_sm_max);
    return request;
  }

  // Time from the start of the first launch to the end of the last. `second_workers` is per SM.
  static double TogetherNs(const char* first, const char* second, double second_solo_ns,
                           int32_t second_workers) {
    auto device = MakeDevice(GetParam());
    const auto lane = *device->CreateLane({core::kWholeDevice, core::LanePriority::kHigh, true});
    const auto other = *device->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
    EXPECT_TRUE(device->Launch(Sized(lane, first, kSoloNs, 1)).ok());
    auto request = Sized(other, second, second_solo_ns, 2);
    request.workers = second_workers * 132;
    EXPECT_TRUE(device->Launch(request).ok());
    core::TimeNs end = 0;
    for (const auto& done : RunUntilIdle(*device)) end = std::max(end, done.end_ns);
    return static_cast<double>(end - H200().device.launch_latency_ns);
  }

  // Time until both parts end. Alone, the CD part would take `cuda_ns`.
  static double FusedNs(core::FusedKernelDesc fused, const char* tensor, const char* cuda,
                        double cuda_ns) {
    auto device = MakeDevice(GetParam());
    const auto lane = *device->CreateLane({core::kWholeDevice, core::LanePriority::kHigh, false});
    const auto other = *device->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
    auto request = Sized(lane, tensor, kSoloNs, 1);
    const auto partner = Sized(other, cuda, cuda_ns, 2);
    request.form = core::Form::kFused;
    fused.tensor_part = request.parts[0].work.kernel->id;
    fused.cuda_part = partner.parts[0].work.kernel->id;
    request.fused = &fused;
    request.parts[0].counter = 0;
    request.parts[0].reset_counter = true;
    core::LaunchPart& second = request.parts.Add();
    second.launch = partner.parts[0].launch;
    second.lane = other;
    second.work.kernel = partner.parts[0].work.kernel;
    second.block_count = partner.parts[0].block_count;
    second.counter = 1;
    second.reset_counter = true;
    second.epoch = 1;
    EXPECT_TRUE(device->Launch(request).ok());
    const auto done = RunUntilIdle(*device);
    EXPECT_EQ(done.size(), 2u);
    core::TimeNs end = 0;
    for (const auto& part : done) end = std::max(end, part.end_ns);
    return static_cast<double>(end - done[0].start_ns);
  }
};

INSTANTIATE_TEST_SUITE_P(Tiers, OverlapTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(OverlapTest, TwoResidentKernels) {
  for (const measured::OverlapRow& row : measured::kOverlapRows) {
    SCOPED_TRACE(std::string(row.tensor_kernel) + " + " + row.cuda_kernel);
    const double together = TogetherNs(row.tensor_kernel, row.cuda_kernel, kSoloNs, 1);
    EXPECT_NEAR(1 - together / (2 * kSoloNs), row.two_kernels, kPoints);
  }
}

TEST_P(OverlapTest, OneFusedKernel) {
  for (const measured::OverlapRow& row : measured::kOverlapRows) {
    SCOPED_TRACE(std::string(row.tensor_kernel) + " + " + row.cuda_kernel);
    core::FusedKernelDesc fused;
    // Load ratio 1 is beyond the opportune one, so the pair takes t0 + 1 - r0.
    fused.opportune_load_ratio = 0.55;
    fused.opportune_duration_ratio = 2 * (1 - row.fused) - 1 + 0.55;
    const double together = FusedNs(fused, row.tensor_kernel, row.cuda_kernel, kSoloNs);
    EXPECT_NEAR(1 - together / (2 * kSoloNs), row.fused, kPoints);
  }
}

TEST_P(OverlapTest, TheFusedCurveHasTwoStages) {
  core::FusedKernelDesc fused;
  fused.opportune_load_ratio = 0.55;
  fused.opportune_duration_ratio = 1.02;
  for (const measured::TwoStagePoint& point : measured::kTwoStageCurve) {
    SCOPED_TRACE(point.load_ratio);
    const double together = FusedNs(fused, "wgmma_loop", "sincos_loop", point.load_ratio * kSoloNs);
    EXPECT_NEAR(together / kSoloNs, point.fused_over_tensor, 0.05 * point.fused_over_tensor);
  }
}

TEST_P(OverlapTest, CublasLtLeavesNoRoomBesideIt) {
  for (const char* kind : measured::kResidentKinds) {
    SCOPED_TRACE(kind);
    const double together = TogetherNs("cublaslt_gemm", kind, kSoloNs, 2);
    const double saved = 1 - together / (2 * kSoloNs);
    EXPECT_GE(saved, measured::kCublasLtSavedLow - kPoints);
    EXPECT_LE(saved, measured::kCublasLtSavedHigh + kPoints);
  }
}

TEST_P(OverlapTest, TheRoomyCublasAlgorithmSavesAtAPrice) {
  // It is 1.2 times slower than the fastest. Beside integer work as long as the fastest one, it
  // saves 12 %.
  const double fastest = kSoloNs / 1.2;
  const double together = TogetherNs("cublaslt_sm80_gemm", "be_integer", fastest, 2);
  EXPECT_NEAR(1 - together / (2 * fastest), 0.12, kPoints);
}

TEST_P(OverlapTest, TheRoomyWgmmaGemm) {
  const double cublas = kSoloNs / measured::kRoomyOverCublas;
  for (const measured::RoomyRow& row : measured::kRoomyRows) {
    SCOPED_TRACE(row.be_kernel);
    const double together = TogetherNs("roomy_wgmma_gemm", row.be_kernel, kSoloNs, 2);
    const double saved = 1 - together / (cublas + kSoloNs);
    EXPECT_GE(saved, row.saved_low - kPoints);
    EXPECT_LE(saved, row.saved_high + kPoints);
  }
}

}  // namespace
}  // namespace gpushare::sim
