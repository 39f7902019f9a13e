// Which pauses of an app are gaps between steps, and which are silences.

#include "src/core/evidence/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSoloNs = 2 * kMs;

class StepsTest : public ::testing::Test {
 protected:
  // One query after a pause, that states `stated_ns` of the next one.
  void Query(int64_t pause_ns, int64_t stated_ns = 0) {
    now_ns += pause_ns;
    steps.Begin(true, kSoloNs, now_ns, now_ns);
    now_ns += kSoloNs;
    steps.End(stated_ns, now_ns);
  }
  // Busy periods of so many steps, after silences of 50 ms; the gaps are 50 to 300 us.
  void Engine(int periods, int steps_each) {
    std::uniform_int_distribution<int64_t> gap_ns(50 * kUs, 300 * kUs);
    for (int p = 0; p < periods; ++p) {
      Query(50 * kMs);
      for (int s = 1; s < steps_each; ++s) Query(gap_ns(random));
    }
  }
  // Poisson arrivals at a server of queries of one length.
  void Random(double load, int queries) {
    std::exponential_distribution<double> gap_ns(load / static_cast<double>(kSoloNs));
    TimeNs arrival_ns = now_ns;
    TimeNs free_ns = now_ns;
    for (int q = 0; q < queries; ++q) {
      arrival_ns += static_cast<int64_t>(gap_ns(random));
      const bool alone = arrival_ns >= free_ns;
      if (alone) steps.End(0, free_ns);
      steps.Begin(alone, kSoloNs, std::max(arrival_ns, free_ns), arrival_ns);
      free_ns = std::max(arrival_ns, free_ns) + kSoloNs;
      ASSERT_EQ(steps.learnt_ns(), 0) << "load " << load << ", query " << q;
    }
    now_ns = free_ns;
    steps.End(0, now_ns);
  }

  Steps steps;
  TimeNs now_ns = 0;
  std::mt19937_64 random{5};
};

TEST_F(StepsTest, AnEngineShowsHowLongItsGapsAre) {
  Engine(20, 100);
  EXPECT_GE(steps.learnt_ns(), 300 * kUs);
  EXPECT_LE(steps.learnt_ns(), 600 * kUs);
  EXPECT_EQ(steps.ExpectedBy(now_ns + 300 * kUs), now_ns + steps.learnt_ns());
  EXPECT_EQ(steps.ExpectedBy(now_ns + steps.learnt_ns()), 0) << "it is a silence by then";
  EXPECT_GE(steps.SilenceShare(), 0.01);
  EXPECT_LE(steps.SilenceShare(), 0.013) << "20 of 2,000, and an error";
}

TEST_F(StepsTest, FewSilencesShowNoGaps) {
  Engine(3, 100);
  EXPECT_EQ(steps.learnt_ns(), 0);
  EXPECT_EQ(steps.SilenceShare(), 1);
}

TEST_F(StepsTest, RandomArrivalsHaveNoGaps) {
  for (const double load : {0.05, 0.2, 0.4, 0.6, 0.8, 0.95}) Random(load, 5'000);
  EXPECT_EQ(steps.SilenceShare(), 1);
}

// Bursts of random arrivals: of the pauses in one most are short, and those between them are long.
TEST_F(StepsTest, BurstsOfRandomArrivalsHaveNoGaps) {
  for (int burst = 0; burst < 200; ++burst) {
    Random(0.7, 40);
    now_ns += 100 * kMs;
    steps.Begin(true, kSoloNs, now_ns, now_ns);
    now_ns += kSoloNs;
    steps.End(0, now_ns);
    ASSERT_EQ(steps.learnt_ns(), 0);
  }
}

TEST_F(StepsTest, PeriodicQueriesHaveNoGaps) {
  for (const int64_t pause_ns : {100 * kUs, kMs, 20 * kMs}) {
    for (int q = 0; q < 2'000; ++q) Query(pause_ns);
    if (pause_ns == 100 * kUs) {
      EXPECT_EQ(steps.learnt_ns(), 0);
    }
  }
}

TEST_F(StepsTest, AStatedGapLastsAsLongAsItSays) {
  Query(0, 200 * kUs);
  EXPECT_EQ(steps.ExpectedBy(now_ns + 199 * kUs), now_ns + 200 * kUs);
  EXPECT_EQ(steps.ExpectedBy(now_ns + 200 * kUs), 0);
  EXPECT_EQ(steps.lapses(), 0);
}

TEST_F(StepsTest, AStatedEndIsASilenceAtOnce) {
  Engine(20, 100);
  Query(100 * kUs, kNoNextQuery);
  EXPECT_EQ(steps.ExpectedBy(now_ns), 0);
}

TEST_F(StepsTest, StatementsTellTheSilences) {
  for (int period = 0; period < 20; ++period) {
    for (int s = 0; s < 99; ++s) Query(s == 0 ? 50 * kMs : 100 * kUs, 200 * kUs);
    Query(100 * kUs, kNoNextQuery);
  }
  EXPECT_GE(steps.SilenceShare(), 0.009);
  EXPECT_LE(steps.SilenceShare(), 0.016);
  EXPECT_EQ(steps.lapses(), 0);
}

TEST_F(StepsTest, AStatementLapsesOnceAndCountsAsASilence) {
  Query(0, 200 * kUs);
  steps.NoteLapse(now_ns + 200 * kUs);
  EXPECT_EQ(steps.lapses(), 0);
  steps.NoteLapse(now_ns + 201 * kUs);
  steps.NoteLapse(now_ns + kMs);
  EXPECT_EQ(steps.lapses(), 1);
  Query(2 * kMs, 200 * kUs);
  EXPECT_EQ(steps.lapses(), 1) << "the query that comes too late";
  for (int q = 0; q < 20; ++q) Query(kMs, 200 * kUs);
  EXPECT_EQ(steps.lapses(), 21);
  EXPECT_EQ(steps.SilenceShare(), 1);
}

TEST_F(StepsTest, AnAppWhoseStatementsLapseIsNotBelieved) {
  for (int q = 0; q < 3; ++q) Query(50 * kMs, 20 * kMs);
  EXPECT_EQ(steps.ExpectedBy(now_ns + kUs), 0);
  for (int q = 0; q < 20; ++q) Query(kMs, 20 * kMs);
  EXPECT_EQ(steps.ExpectedBy(now_ns + kUs), now_ns + 20 * kMs) << "they come true again";
}

// The flow hears of the end of a step after the begin of the next one, as of a fast host loop.
TEST_F(StepsTest, AnEndThatIsSeenLateIsAPauseToo) {
  for (int period = 0; period < 20; ++period) {
    Query(50 * kMs);
    for (int s = 1; s < 100; ++s) {
      const TimeNs ended_ns = now_ns;
      now_ns += 20 * kUs;
      if (s == 1) {
        steps.Begin(true, kSoloNs, now_ns, now_ns);
      } else {
        steps.Begin(false, kSoloNs, now_ns, now_ns);
        steps.EndSeenLate(0, kSoloNs, ended_ns);
      }
      now_ns += kSoloNs;
    }
    steps.End(0, now_ns);
  }
  EXPECT_GE(steps.learnt_ns(), 20 * kUs);
  EXPECT_LE(steps.learnt_ns(), 64 * kUs);
  EXPECT_LE(steps.SilenceShare(), 0.013);
  steps.Begin(true, kSoloNs, now_ns, now_ns);
  steps.Begin(false, kSoloNs, now_ns + kUs, now_ns + kUs);
  const double share = steps.SilenceShare();
  steps.EndSeenLate(0, kSoloNs, now_ns + kSoloNs);
  EXPECT_EQ(steps.SilenceShare(), share) << "the second one waited for the first";
}

// A query that the application abandoned says nothing, and one that returns is no new one.
TEST_F(StepsTest, AQueryThatReturnsIsNoPause) {
  Query(0, 200 * kUs);
  steps.Return();
  steps.NoteLapse(now_ns + kMs);
  EXPECT_EQ(steps.lapses(), 0);
  EXPECT_EQ(steps.ExpectedBy(now_ns), 0);
}

}  // namespace
}  // namespace gpushare::core
