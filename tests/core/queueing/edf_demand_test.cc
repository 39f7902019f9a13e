// Processor demand: worked examples, and random classes against every interval by itself.

#include "src/core/queueing/edf_demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/core/base/random.h"
#include "src/core/base/types.h"
#include "src/core/queueing/edf_response.h"
#include "src/core/queueing/fixed_priority.h"

namespace gpushare::core {
namespace {

bool HoldsByEveryInterval(const std::vector<DemandClass>& classes, int64_t until) {
  for (int64_t interval = classes.front().deadline_ns; interval <= until; ++interval) {
    if (DemandNs(classes, interval) > interval) return false;
  }
  return true;
}

std::vector<DemandClass> RandomClasses(Random& random, bool blocking) {
  std::vector<DemandClass> classes(1 + (random.Next() % 5));
  for (DemandClass& one : classes) {
    one.period_ns = 4 + static_cast<int64_t>(random.Next() % 40);
    one.deadline_ns = std::max<int64_t>(
        2, one.period_ns - static_cast<int64_t>(random.Next() % (one.period_ns / 2 + 1)));
    one.work_ns = 1 + static_cast<int64_t>(random.Next() % (one.deadline_ns / 2));
    one.blocking_ns = blocking ? static_cast<int64_t>(random.Next() % (one.work_ns + 1)) : 0;
  }
  std::sort(classes.begin(), classes.end(), [](const DemandClass& a, const DemandClass& b) {
    return a.deadline_ns < b.deadline_ns;
  });
  return classes;
}

TEST(EdfDemand, AgreesWithEveryInterval) {
  Random random(1);
  int held = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::vector<DemandClass> classes = RandomClasses(random, i % 2 == 0);
    if (DemandUtilisation(classes) > 0.99) continue;
    const bool expected = HoldsByEveryInterval(classes, 5'000);
    ASSERT_EQ(DemandHolds(classes), expected) << "case " << i;
    // The quick yes never says more.
    ASSERT_LE(DemandHoldsByLines(classes), expected) << "case " << i;
    (expected ? held : refused) += 1;
  }
  EXPECT_GT(held, 2'000);
  EXPECT_GT(refused, 2'000);
}

TEST(EdfDemand, ASuspectChangesNoAnswer) {
  Random random(2);
  int64_t suspect = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::vector<DemandClass> classes = RandomClasses(random, true);
    ASSERT_EQ(DemandHolds(classes, suspect), DemandHolds(classes)) << "case " << i;
  }
}

// Blocking below the shortest deadline is no miss: nothing is due there.
TEST(EdfDemand, ABlockerLongerThanNothingThatIsDueIsHarmless) {
  const std::vector<DemandClass> classes = {{100, 50, 10, 0}, {1'000, 900, 200, 40}};
  EXPECT_TRUE(DemandHolds(classes));
  const std::vector<DemandClass> longer = {{100, 50, 10, 0}, {1'000, 900, 200, 41}};
  EXPECT_FALSE(DemandHolds(longer));
}

TEST(EdfDemand, AFullResourceIsRefused) {
  const std::vector<DemandClass> full = {{10, 10, 5, 0}, {20, 20, 10, 0}};
  EXPECT_EQ(DemandHorizonNs(full), kNever);
  EXPECT_FALSE(DemandHolds(full));
}

// Periods whose least common multiple does not fit in 64 bits need no hyperperiod.
TEST(EdfDemand, HyperperiodsMayOverflow) {
  std::vector<DemandClass> classes;
  for (const int64_t prime : {3'599'999'999'993, 3'599'999'999'971, 3'599'999'999'947}) {
    classes.push_back({prime, prime / 2, prime / 7, prime / 50});
  }
  std::sort(classes.begin(), classes.end(), [](const DemandClass& a, const DemandClass& b) {
    return a.deadline_ns < b.deadline_ns;
  });
  EXPECT_TRUE(DemandHolds(classes));
  for (DemandClass& one : classes) one.work_ns = one.period_ns / 3 - 1'000;
  EXPECT_FALSE(DemandHolds(classes));
}

// 1 of every 2, and 2 of every 8: both together are busy until 4.
TEST(EdfResponse, BoundsByHand) {
  const std::vector<DemandClass> classes = {{2, 2, 1, 0}, {8, 8, 2, 0}};
  EXPECT_EQ(BusyPeriodNs(classes), 4);
  int64_t steps = 10'000;
  const std::vector<int64_t> bounds = ResponseBoundsNs(classes, steps);
  EXPECT_EQ(bounds[0], 1);
  EXPECT_EQ(bounds[1], 4);
}

TEST(EdfResponse, WithoutStepsTheDeadlineIsTheBound) {
  const std::vector<DemandClass> classes = {{2, 2, 1, 0}, {8, 8, 2, 0}};
  int64_t steps = 0;
  EXPECT_EQ(ResponseBoundsNs(classes, steps), (std::vector<int64_t>{2, 8}));
}

TEST(FixedPriority, ResponsesByHand) {
  // Lehoczky's first example without blocking: 40 + 2 x 20 + ... by rate.
  const std::vector<DemandClass> classes = {
      {100, 100, 40, 0}, {150, 150, 40, 0}, {350, 350, 100, 0}};
  EXPECT_EQ(FixedPriorityResponseNs(classes, 0), 40);
  EXPECT_EQ(FixedPriorityResponseNs(classes, 1), 80);
  EXPECT_EQ(FixedPriorityResponseNs(classes, 2), 300);
  EXPECT_TRUE(FixedPriorityHolds(classes));
}

TEST(FixedPriority, BlockingOfALowerPriorityCounts) {
  std::vector<DemandClass> classes = {{100, 100, 40, 0}, {350, 350, 100, 60}};
  EXPECT_EQ(FixedPriorityResponseNs(classes, 0), 100);
  classes[1].blocking_ns = 61;
  EXPECT_EQ(FixedPriorityResponseNs(classes, 0), kNever);
  EXPECT_FALSE(FixedPriorityHolds(classes));
}

// What fixed priorities keep, EDF keeps.
TEST(FixedPriority, NeverHoldsMoreThanEdf) {
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const std::vector<DemandClass> classes = RandomClasses(random, true);
    if (FixedPriorityHolds(classes) && DemandUtilisation(classes) < 0.99) {
      ASSERT_TRUE(DemandHolds(classes)) << "case " << i;
    }
  }
}

}  // namespace
}  // namespace gpushare::core
