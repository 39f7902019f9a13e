// Longer lengths of a cut: that they are nested, how long they are, and what a run takes next.

#include "src/core/seams/segment_lengths.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;

bool Contains(const std::vector<size_t>& all, const std::vector<size_t>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::vector<int64_t> RandomDurations(std::mt19937_64& random, size_t count) {
  std::uniform_int_distribution<int64_t> any(5 * kUs, 700 * kUs);
  std::uniform_int_distribution<int64_t> kind(0, 3);
  std::vector<int64_t> durations_ns(count);
  for (int64_t& duration_ns : durations_ns)
    duration_ns = kind(random) == 0 ? any(random) : 95 * kUs;
  return durations_ns;
}

TEST(SegmentLengths, AGraphHasGroupsOf400UsAndOf2MsAndIsOneItself) {
  const std::vector<LongerCut> cuts = LongerCuts({}, 100, 100 * kUs);
  ASSERT_EQ(cuts.size(), 3U);
  EXPECT_EQ(cuts[0].length_ns, kNever);
  EXPECT_EQ(cuts[0].begins, std::vector<size_t>{0});
  EXPECT_EQ(cuts[1].length_ns, 2 * kMs);
  EXPECT_EQ(cuts[1].begins, (std::vector<size_t>{0, 20, 40, 60, 80}));
  EXPECT_EQ(cuts[2].length_ns, 400 * kUs);
  EXPECT_EQ(cuts[2].begins.size(), 25U);
}

TEST(SegmentLengths, ALengthThatJoinsNothingIsLeftOut) {
  EXPECT_EQ(LongerCuts({}, 4, 1500 * kUs).size(), 1U) << "whole";
  EXPECT_EQ(LongerCuts({}, 10, 5 * kMs).size(), 1U) << "whole";
  EXPECT_EQ(LongerCuts({}, 1, 100 * kUs).size(), 0U);
  EXPECT_EQ(LongerCuts({}, 100, 20 * kUs).size(), 3U) << "one group of 2 ms, 400 us, 100 us";
  // A graph of 1.5 ms is one group of 2 ms: a wait of that length is enough for all of it.
  const std::vector<LongerCut> cuts = LongerCuts({}, 15, 100 * kUs);
  ASSERT_EQ(cuts.size(), 2U);
  EXPECT_EQ(cuts[0].length_ns, 2 * kMs);
  EXPECT_EQ(cuts[0].begins, std::vector<size_t>{0});
}

TEST(SegmentLengths, EachBoundaryIsOneOfTheShorterCuts) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 200; ++run) {
    const size_t count = 2 + random() % 300;
    const std::vector<int64_t> durations_ns = RandomDurations(random, count);
    const std::vector<LongerCut> cuts = LongerCuts(durations_ns, count, 100 * kUs);
    for (size_t c = 0; c < cuts.size(); ++c) {
      const LongerCut& cut = cuts[c];
      ASSERT_EQ(cut.begins.front(), 0U);
      ASSERT_LT(cut.begins.back(), count);
      ASSERT_TRUE(std::is_sorted(cut.begins.begin(), cut.begins.end()));
      const std::vector<size_t> longer = c > 0 ? cuts[c - 1].begins : std::vector<size_t>{0};
      ASSERT_TRUE(Contains(cut.begins, longer)) << "run " << run;
      for (size_t g = 0; g < cut.begins.size(); ++g) {
        const size_t end = g + 1 < cut.begins.size() ? cut.begins[g + 1] : count;
        if (end == cut.begins[g] + 1) continue;  // a long segment stays alone
        const int64_t sum_ns =
            std::accumulate(durations_ns.begin() + static_cast<ptrdiff_t>(cut.begins[g]),
                            durations_ns.begin() + static_cast<ptrdiff_t>(end), int64_t{0});
        ASSERT_LE(sum_ns, cut.length_ns) << "run " << run;
      }
    }
  }
}

TEST(SegmentLengths, ARunChangesItsLengthAtTheNextBoundaryOfBoth) {
  const std::vector<LongerCut> cuts = LongerCuts({}, 100, 100 * kUs);
  const auto next = [&](size_t at, int64_t longest_ns) {
    return StepAt(cuts, at, at, 100, longest_ns).end;
  };
  EXPECT_EQ(next(0, kNever), 100U);
  EXPECT_EQ(next(0, 0), 1U);
  EXPECT_EQ(next(0, 399 * kUs), 1U);
  EXPECT_EQ(next(0, 400 * kUs), 4U);
  EXPECT_EQ(next(1, 400 * kUs), 2U) << "no group of 400 us begins there";
  EXPECT_EQ(next(3, kNever), 4U);
  EXPECT_EQ(next(4, kNever), 8U) << "nor one of 2 ms";
  EXPECT_EQ(next(20, kNever), 40U);
  EXPECT_EQ(next(99, kNever), 100U);
}

TEST(SegmentLengths, EachSegmentRunsOnceHoweverTheLengthChanges) {
  std::mt19937_64 random(2);
  constexpr int64_t kLimits[] = {0, 400 * kUs, 2 * kMs, kNever};
  for (int run = 0; run < 200; ++run) {
    const size_t count = 2 + random() % 300;
    const std::vector<LongerCut> cuts =
        LongerCuts(RandomDurations(random, count), count, 100 * kUs);
    for (size_t at = 0; at < count;) {
      const SegmentStep step = StepAt(cuts, at, at, count, kLimits[random() % 4]);
      ASSERT_EQ(step.begin, at);
      ASSERT_GT(step.end, at);
      ASSERT_LE(step.end, count);
      if (step.cut != SegmentStep::kOwn) {
        ASSERT_EQ(cuts[step.cut].begins[step.group], at);
      }
      at = step.end;
    }
  }
}

// The limit grows while a run is in the middle of a longer group. The run keeps short segments
// until the next group begins.
TEST(SegmentLengths, AGroupThatBeginsBeforeTheChangeIsNotRun) {
  const std::vector<LongerCut> cuts = LongerCuts({}, 100, 100 * kUs);
  EXPECT_EQ(StepAt(cuts, 25, 22, 100, 2 * kMs).end, 28U);
  EXPECT_EQ(StepAt(cuts, 23, 22, 100, 2 * kMs).end, 24U);
  EXPECT_EQ(StepAt(cuts, 25, 0, 100, 2 * kMs).end, 40U);
  EXPECT_EQ(StepAt(cuts, 25, 0, 100, 2 * kMs).begin, 20U);
}

}  // namespace
}  // namespace gpushare::core
