// What an online model does with measurements that jump, drift, alternate or are nonsense: every
// prediction stays finite, and 20 observations of the new truth are enough.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "src/core/base/limits.h"
#include "src/models/online/online_model.h"

namespace gpushare::models {
namespace {

using core::CostModel;
using core::DeviceProfile;
using core::KernelDesc;
using core::KernelId;
using core::Observation;
using core::Prediction;
using core::TaskFeatures;
using core::TaskKind;

constexpr int kRecovery = 20;

class RecoveryTest : public ::testing::TestWithParam<size_t> {
 protected:
  RecoveryTest() {
    kernel_.id = KernelId{1};
    kernel_.name = "kernel";
    kernel_.evictable = true;
    kernel_.simulation.present = true;
    kernel_.simulation.block_task_ns = 20000;
    model_->AddKernel(kernel_);
  }

  // Kernels over block tasks, copies over bytes, opaque work over its declared bound.
  TaskFeatures FeaturesAt(int64_t size) const {
    TaskFeatures features;
    features.app = 1;
    switch (GetParam()) {
      case 0:
        features.kernel = &kernel_;
        features.block_tasks = size;
        break;
      case 1:
        features.kind = TaskKind::kMemcpy;
        features.bytes = size * 4096;
        features.direction = core::CopyDirection::kHostToDevice;
        break;
      default:
        features.kind = TaskKind::kOpaque;
        features.declared_ns = size * 1000;
    }
    return features;
  }
  void See(int64_t size, double measured_ns) {
    Observation observation;
    observation.features = FeaturesAt(size);
    observation.sms = DeviceProfile().sm_count;
    observation.measured_ns =
        std::isfinite(measured_ns) ? static_cast<int64_t>(measured_ns) : core::kNever;
    model_->Observe(observation);
    ExpectFinite(size);
  }
  void ExpectFinite(int64_t size) const {
    const Prediction prediction = model_->durations().PredictSolo(FeaturesAt(size));
    EXPECT_GE(prediction.duration_ns, 0);
    EXPECT_LE(prediction.duration_ns, core::kMaxDurationNs);
    EXPECT_GE(prediction.error_ns, 0);
    EXPECT_LE(prediction.error_ns, core::kMaxDurationNs);
  }
  double ErrorAt(int64_t size, double truth_ns) const {
    const auto predicted =
        static_cast<double>(model_->durations().PredictSolo(FeaturesAt(size)).duration_ns);
    return std::abs(predicted / truth_ns - 1);
  }
  static double Truth(int64_t size) { return 5000 + 100.0 * static_cast<double>(size); }
  static int64_t SizeOf(int i) { return 500 + 700 * (i % 5); }
  void Teach(int count, double factor = 1) {
    for (int i = 0; i < count; ++i) See(SizeOf(i), factor * Truth(SizeOf(i)));
  }

  KernelDesc kernel_;
  std::unique_ptr<CostModel> model_ = MakeOnlineModel(DeviceProfile());
};

TEST_P(RecoveryTest, AJumpOfTenTimesIsFollowed) {
  for (const double factor : {10.0, 1.0, 0.1, 1.0}) {
    Teach(60);
    Teach(kRecovery, factor);
    for (int i = 0; i < 5; ++i) EXPECT_LT(ErrorAt(SizeOf(i), factor * Truth(SizeOf(i))), 0.1);
  }
}

TEST_P(RecoveryTest, ADriftIsFollowed) {
  Teach(60);
  double factor = 1;
  for (int i = 0; i < 200; ++i) {
    factor *= 1.005;
    See(SizeOf(i), factor * Truth(SizeOf(i)));
  }
  for (int i = 0; i < 5; ++i) EXPECT_LT(ErrorAt(SizeOf(i), factor * Truth(SizeOf(i))), 0.12);
}

TEST_P(RecoveryTest, NonsenseDoesNotOutlastIt) {
  Teach(60);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), 1.0, 9e18}) {
    for (int i = 0; i < 3; ++i) See(SizeOf(i), bad);
  }
  Teach(kRecovery);
  for (int i = 0; i < 5; ++i) EXPECT_LT(ErrorAt(SizeOf(i), Truth(SizeOf(i))), 0.2);
}

// Two inputs of one size that take different times: no prediction fits both, and the error bar
// tells so.
TEST_P(RecoveryTest, TwoAlternatingInputsWidenTheErrorBar) {
  Teach(60);
  const auto bar = [&] {
    const Prediction prediction = model_->durations().PredictSolo(FeaturesAt(1000));
    return static_cast<double>(prediction.error_ns) / static_cast<double>(prediction.duration_ns);
  };
  const double before = bar();
  for (int i = 0; i < 60; ++i) See(1000, Truth(1000) * (i % 2 == 0 ? 1 : 3));
  EXPECT_GT(bar(), 0.2);
  EXPECT_GT(bar(), 4 * before);
  const auto predicted =
      static_cast<double>(model_->durations().PredictSolo(FeaturesAt(1000)).duration_ns);
  EXPECT_GE(predicted, 0.9 * Truth(1000));
  EXPECT_LE(predicted, 3.3 * Truth(1000));
  for (int i = 0; i < kRecovery; ++i) See(1000, Truth(1000));
  EXPECT_LT(ErrorAt(1000, Truth(1000)), 0.1);
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, RecoveryTest, ::testing::Values(0U, 1U, 2U),
                         [](const ::testing::TestParamInfo<size_t>& kind) {
                           return std::string(kind.param == 0   ? "Kernels"
                                              : kind.param == 1 ? "Copies"
                                                                : "OpaqueWork");
                         });

}  // namespace
}  // namespace gpushare::models
