// A fused launch alone takes what the profile's points of its pair say, and slows its neighbours
// like one launch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "src/sim/physics/fused_pace.h"
#include "src/sim/sim_device.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

class FusedTest : public testing::TestWithParam<Tier> {
 protected:
  void Open(const models::FusedRecord& record) {
    SimOptions options;
    options.profile = Calibrated().device;
    options.tier = GetParam();
    device_ = *MakeSimDevice(options);
    tensor_ = *Calibrated().FindKernel(record.tensor);
    cuda_ = *Calibrated().FindKernel(record.cuda);
    ASSERT_TRUE(device_->PrepareKernel(tensor_).ok());
    ASSERT_TRUE(device_->PrepareKernel(cuda_).ok());
    fused_ = {};
    fused_.id = core::KernelId{1000};
    fused_.name = record.name;
    fused_.tensor_part = tensor_.id;
    fused_.cuda_part = cuda_.id;
    fused_.tensor_blocks = record.tensor_blocks;
    fused_.cuda_blocks = record.cuda_blocks;
    fused_.opportune_load_ratio = record.opportune_load_ratio;
    fused_.opportune_duration_ratio = record.opportune_duration_ratio;
    fused_.points = record.points;
    ASSERT_TRUE(device_->PrepareFusedKernel(fused_).ok());
    first_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kHigh, false});
    second_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
  }

  static int64_t TasksFor(const core::KernelDesc& kernel, double ns) {
    return std::llround(ns / static_cast<double>(kernel.simulation.block_task_ns) * 132 *
                        kernel.resources.workers_per_sm_max);
  }

  static void Fill(core::LaunchPart& part, const core::KernelDesc& kernel, core::LaneIndex lane,
                   double ns, int32_t counter) {
    part.launch = core::LaunchId{static_cast<uint64_t>(counter) + 1};
    part.lane = lane;
    part.work.kernel = &kernel;
    part.block_count = TasksFor(kernel, ns);
    part.counter = counter;
    part.reset_counter = true;
    part.epoch = 1;
  }

  double SpanNs() {
    core::TimeNs start = core::kNever;
    core::TimeNs end = 0;
    for (const auto& done : RunUntilIdle(*device_)) {
      start = std::min(start, done.start_ns);
      end = std::max(end, done.end_ns);
    }
    return static_cast<double>(end - start);
  }

  double TensorAloneNs() {
    core::LaunchRequest request;
    request.form = core::Form::kOriginal;
    Fill(request.parts[0], tensor_, first_, tensor_ns_, 0);
    request.parts[0].counter = -1;
    EXPECT_TRUE(device_->Launch(request).ok());
    return SpanNs();
  }

  double FusedNs(double cuda_ns) {
    core::LaunchRequest request;
    request.form = core::Form::kFused;
    request.fused = &fused_;
    Fill(request.parts[0], tensor_, first_, tensor_ns_, 0);
    Fill(request.parts.Add(), cuda_, second_, cuda_ns, 1);
    EXPECT_TRUE(device_->Launch(request).ok());
    return SpanNs();
  }

  // The TC part's own time, long enough that the tail of the last block tasks does not count.
  double tensor_ns_ = 10e6;
  std::unique_ptr<core::Device> device_;
  core::KernelDesc tensor_;
  core::KernelDesc cuda_;
  core::FusedKernelDesc fused_;
  core::LaneIndex first_ = core::kNoLane;
  core::LaneIndex second_ = core::kNoLane;
};

INSTANTIATE_TEST_SUITE_P(Tiers, FusedTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(FusedTest, ALaunchAloneTakesWhatThePointsOfItsPairSay) {
  // Pairs of examples/scenarios/h200_policies.json.
  for (const char* name :
       {"gpushare_gemm_skinny_with_mriq_1_1_setmaxnreg", "gpushare_gemm_skinny_with_cutcp_1_1",
        "gpushare_gemm_skinny_with_sgemm_1_1", "gpushare_gemm_roomy_with_fft_1_1_setmaxnreg",
        "gpushare_gemm_roomy_with_cutcp_1_1_setmaxnreg", "gpushare_gemm_roomy_with_lbm_1_1"}) {
    const auto& records = Calibrated().calibration.fused;
    const auto record = std::find_if(records.begin(), records.end(),
                                     [&](const auto& at) { return at.name == name; });
    ASSERT_NE(record, records.end()) << name;
    Open(*record);
    const double alone = TensorAloneNs();
    for (const core::FusedPoint& point : record->points) {
      SCOPED_TRACE(testing::Message() << name << " at " << point.load_ratio);
      const double ratio = FusedNs(point.load_ratio * tensor_ns_) / alone;
      EXPECT_NEAR(ratio, point.duration_ratio, 0.04 * point.duration_ratio);
    }
  }
}

TEST_P(FusedTest, AShortLaunchTakesIt) {
  // As long as a decoder's task in examples/scenarios/h200_policies.json.
  const auto& records = Calibrated().calibration.fused;
  const auto record = std::find_if(records.begin(), records.end(), [](const auto& at) {
    return at.name == "gpushare_gemm_skinny_with_mriq_1_1_setmaxnreg";
  });
  ASSERT_NE(record, records.end());
  Open(*record);
  tensor_ns_ = 0.25e6;
  const double alone = TensorAloneNs();
  for (const core::FusedPoint& point : record->points) {
    SCOPED_TRACE(point.load_ratio);
    const double ratio = FusedNs(point.load_ratio * tensor_ns_) / alone;
    EXPECT_NEAR(ratio, point.duration_ratio, 0.05 * point.duration_ratio);
  }
}

TEST(FusedPaceTest, WithoutPointsThePaperCurveHolds) {
  core::FusedKernelDesc fused;
  fused.opportune_load_ratio = 0.5;
  fused.opportune_duration_ratio = 1.2;
  fused.points = {{0.1, 1.5}, {1.9, 4.0}};  // too few
  const FusedPace pace = PaceOf(fused);
  EXPECT_DOUBLE_EQ(pace.tensor.together, 1.2);
  EXPECT_DOUBLE_EQ(pace.tensor.alone, 1);
  EXPECT_DOUBLE_EQ(pace.cuda.together, 2.4);
  EXPECT_DOUBLE_EQ(pace.cuda.alone, 1);
}

TEST(FusedPaceTest, TwoLinesAreFoundFromPointsInAnyOrder) {
  core::FusedKernelDesc fused;
  // 1.1 + 0.3 r up to 1.0, then 1.5 more for each r.
  fused.points = {{1.0, 1.4}, {1.9, 2.75}, {0.1, 1.13}, {1.8, 2.6}, {0.2, 1.16}};
  const FusedPace pace = PaceOf(fused);
  EXPECT_NEAR(pace.tensor.together, 1.4, 1e-6);
  EXPECT_NEAR(pace.tensor.alone, 1.1, 1e-6);
  EXPECT_NEAR(pace.cuda.together, 1.4, 1e-6);
  EXPECT_NEAR(pace.cuda.alone, 1.5, 1e-6);
}

TEST(FusedPaceTest, NoisyPointsGiveNoPaceOfZero) {
  core::FusedKernelDesc fused;
  fused.points = {{0.1, 1.0}, {0.2, 1.1}, {1.0, 2.0}, {1.8, 1.9}, {1.9, 1.0}};
  const FusedPace pace = PaceOf(fused);
  EXPECT_GE(pace.cuda.alone, 0.5);
  EXPECT_GE(pace.tensor.alone, 0.5);
}

}  // namespace
}  // namespace gpushare::sim
