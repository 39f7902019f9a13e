// What of a BE app's weight counts beside quotas.

#include "src/core/state/fair_weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace gpushare::core {
namespace {

using ::testing::ElementsAre;

std::vector<double> Bounded(const std::vector<int32_t>& quotas, double capsms,
                            std::vector<double> weights) {
  BoundByQuotas(quotas, capsms, absl::MakeSpan(weights));
  return weights;
}

TEST(FairWeightTest, QuotasThatBindNobodyLeaveTheWeights) {
  EXPECT_THAT(Bounded({0, 100, 66}, 132, {1, 2, 1}), ElementsAre(1, 2, 1));
  EXPECT_THAT(Bounded({}, 132, {}), ElementsAre());
}

TEST(FairWeightTest, AnAppThatItsQuotaBindsLeavesTheRestToTheOthers) {
  // 12 of 132 CapSMs; the other two share 120.
  EXPECT_THAT(Bounded({12, 0, 0}, 132, {1, 1, 1}), ElementsAre(0.2, 1, 1));
  EXPECT_THAT(Bounded({12, 0, 0}, 132, {1, 1, 3}), ElementsAre(0.4, 1, 3));
}

// One that binds at first raises what the others get, until a second one binds.
TEST(FairWeightTest, TheRestOfOneQuotaMayLetAnotherBind) {
  EXPECT_THAT(Bounded({10, 50, 0}, 132, {1, 1, 1}), ElementsAre(10.0 / 72, 50.0 / 72, 1));
}

TEST(FairWeightTest, WhereQuotasBindAllTheyAreTheShares) {
  EXPECT_THAT(Bounded({24, 6, 6, 6, 6}, 48, {1, 1, 1, 1, 1}),
              ElementsAre(1, 0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(Bounded({24, 6}, 132, {4, 1}), ElementsAre(4, 1));
}

// An app's floor is what the quotas of the others leave.
RC_GTEST_PROP(FairWeightProperty, NobodyGetsLessThanItsFloorOrMoreThanItsQuota, ()) {
  const auto count = *rc::gen::inRange<size_t>(1, 9);
  const double capsms = *rc::gen::inRange(1, 133);
  const auto quotas =
      *rc::gen::container<std::vector<int32_t>>(count, rc::gen::inRange<int32_t>(0, 133));
  const auto given = *rc::gen::container<std::vector<double>>(
      count, rc::gen::map(rc::gen::inRange(1, 1001), [](int weight) { return weight / 10.0; }));
  const std::vector<double> weights = Bounded(quotas, capsms, given);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto most = [&](size_t app) { return quotas[app] > 0 ? quotas[app] : capsms; };
  double asked = 0;
  for (size_t app = 0; app < count; ++app) asked += most(app);
  for (size_t app = 0; app < count; ++app) {
    const double share = std::min(capsms, asked) * weights[app] / sum;
    RC_ASSERT(share <= most(app) + 1e-6);
    RC_ASSERT(share >= std::min(most(app), capsms - (asked - most(app))) - 1e-6);
    RC_ASSERT(weights[app] <= given[app] + 1e-6);
  }
}

}  // namespace
}  // namespace gpushare::core
