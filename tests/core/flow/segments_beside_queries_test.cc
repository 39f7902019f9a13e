// A training step beside the queries of an app that promises a target alone: adaptive learns what
// its segments gain there, and uses a split where they gain less.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/core/flow/open_loop.h"
#include "tests/core/forwarding_model.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

// Queries of 1 ms at load 0.5, for which 84 of 132 SMs are enough. A split of these gives BE
// 0.5 + 0.5 x 48 / 132 = 0.68.
OpenLoop::Service ServiceOn(int32_t sms) {
  return {.load = 0.5,
          .solo_ns = kMs,
          .p99_alone_ns = 4 * kMs,
          .target_ns = 12 * kMs,
          .speed = {{84, 1}, {132, 1}},
          .nodes = 50,
          .sms = sms};
}

double RateBeside(const OpenLoop::Service& service, int32_t step_sms, double* late,
                  OpenLoop::WrapModel wrap = nullptr) {
  OpenLoop loop("adaptive", service, wrap);
  const int step = loop.AddBe({.duration_ns = 20 * kMs, .nodes = 1'000, .sms = step_sms});
  loop.Run(4'000);
  *late = loop.LateShare();
  return loop.Rate(step);
}

// Its kernels find the SMs that the queries leave.
TEST(SegmentsBesideQueriesTest, WhereQueriesLeaveSmsTheStepRunsBesideThem) {
  double late = 0;
  EXPECT_GT(RateBeside(ServiceOn(60), 60, &late), 0.85);
  EXPECT_LT(late, 0.01);
}

// Nothing is gained beside them, which a first idea cannot know.
TEST(SegmentsBesideQueriesTest, WhereQueriesLeaveNoneTheStepGetsItsSideOfASplit) {
  double late = 0;
  EXPECT_GT(RateBeside(ServiceOn(0), 0, &late), 0.62);
  EXPECT_LT(late, 0.01);
}

// Predicts that BE work is half as fast again beside LC work as it is.
class HopefulModel final : public ForwardingModel {
 public:
  using ForwardingModel::ForwardingModel;
  double SpeedBeside(const KernelDesc& kernel, int32_t sms, const KernelDesc& neighbour,
                     int32_t neighbour_sms) const override {
    const double speed = ForwardingModel::SpeedBeside(kernel, sms, neighbour, neighbour_sms);
    return kernel.name == "be0" ? 1.5 * speed : speed;
  }
};

// On the split the step is worth 0.65, beside the queries 0.74. As the split is measured, it comes
// near a tie, where it is still measured.
TEST(SegmentsBesideQueriesTest, ASplitThatGivesLessThanPredictedIsLeft) {
  const OpenLoop::WrapModel hopeful = [](std::unique_ptr<CostModel> model) {
    return std::unique_ptr<CostModel>(std::make_unique<HopefulModel>(std::move(model)));
  };
  for (const uint64_t seed : {1, 2, 3}) {
    OpenLoop::Service service = ServiceOn(60);
    service.seed = seed;
    double late = 0;
    EXPECT_GT(RateBeside(service, 84, &late, hopeful), 0.69) << "seed " << seed;
    EXPECT_LT(late, 0.01);
  }
}

}  // namespace
}  // namespace gpushare::core
