// Shift: the formula against a sum over waits and simulated queues; its limits; credit.

#include "src/core/policies/adaptive/arrangement/shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "tests/core/md1_queue.h"

namespace gpushare::core {
namespace {

constexpr double kServiceNs = 1e6;
constexpr int kQueries = 400'000;

// eta of the M/D/1 queue.
double RateOf(double load) { return TailRateOverService(load) / kServiceNs; }

LcAppView App(double tail_rate, int64_t budget_ns) {
  LcAppView app;
  app.tail_rate = tail_rate;
  app.blocking_budget_ns = budget_ns;
  return app;
}

double ShareFor(const LcAppView& app, const Delay& delay) {
  return app.blocking_budget_ns == kNever ? 1 : ShiftLimit(app).ShareOf(delay);
}

// What Shifts answers, without its memory.
double LeastShare(const Snapshot& snapshot, const Delay& delay) {
  double share = 1;
  for (const LcAppView& app : snapshot.lc_apps) share = std::min(share, ShareFor(app, delay));
  return share < kIdleShareMin ? 0 : share;
}

// How far the p99 moves, as a sum over many waits: a fixed one, and a rest of what nothing evicts.
double SummedShift(double tail_rate, const Delay& delay, double share) {
  constexpr int kWaits = 20'000;
  double moment = 0;
  for (int i = 0; i < kWaits; ++i) {
    const double rest = (i + 0.5) / kWaits * static_cast<double>(delay.uncuttable_ns);
    moment += std::exp(tail_rate * (static_cast<double>(delay.eviction_ns) + rest)) / kWaits;
  }
  return std::log(1 - share + share * moment) / tail_rate;
}

bool IsOneOf(const Snapshot& snapshot, double share) {
  Shifts shifts;
  return Shift(snapshot, shifts).IsOneOf(share);
}

// p99 of a FIFO server that takes vacations of `vacation_ns` in the idle periods that the policy
// draws for `share`; and in `drawn` their part.
double P99(double load, double vacation_ns, double share, double& drawn) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> gap(load / kServiceNs);
  std::vector<double> latencies;
  std::array<LcAppView, 1> apps = {};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  double arrival = 0;
  double free_at = 0;
  int periods = 0;
  int shared = 0;
  for (int i = 0; i < kQueries; ++i) {
    arrival += gap(random);
    if (arrival > free_at) {
      apps[0].idle_since_ns = static_cast<TimeNs>(free_at);
      ++periods;
      if (vacation_ns > 0 && IsOneOf(snapshot, share)) {
        ++shared;
        free_at += std::ceil((arrival - free_at) / vacation_ns) * vacation_ns;
      }
    }
    free_at = std::max(free_at, arrival) + kServiceNs;
    latencies.push_back(free_at - arrival);
  }
  drawn = static_cast<double>(shared) / periods;
  std::nth_element(latencies.begin(), latencies.begin() + kQueries * 99 / 100, latencies.end());
  return latencies[static_cast<size_t>(kQueries) * 99 / 100];
}

TEST(ShiftTest, TheBoundIsReachedAndKeptInSimulatedQueues) {
  double drawn = 0;
  for (const double load : {0.3, 0.5, 0.7}) {
    const double alone_ns = P99(load, 0, 0, drawn);
    for (const double vacation_ns : {0.5e6, 1e6, 1.5e6}) {
      const auto budget_ns = static_cast<int64_t>(0.05 * alone_ns);
      const LcAppView app = App(RateOf(load), budget_ns);
      const double share = ShareFor(app, {.uncuttable_ns = static_cast<int64_t>(vacation_ns)});
      const double p99_ns = P99(load, vacation_ns, share, drawn);
      EXPECT_NEAR(drawn, share, 0.02);
      EXPECT_LE(p99_ns / alone_ns, 1.07) << load << ' ' << vacation_ns << ' ' << share;
      if (share < 1) {
        EXPECT_GE(p99_ns / alone_ns, 1.03) << load << ' ' << vacation_ns << ' ' << share;
      }
    }
  }
}

// A service of periodic arrivals has no queue: an eviction beyond the budget makes each query late
// that meets it, whatever rate the tail is given.
TEST(ShiftTest, PeriodicQueriesAreLateInOneOfAHundredPeriodsAtMost) {
  constexpr int64_t kBudgetNs = 50'000;
  LcAppView app = App(RateOf(0.5), kBudgetNs);
  EXPECT_GE(ShareFor(app, {2 * kBudgetNs, 0}), 0.3) << "as if arrivals were random";
  app.late_delay_ns = kBudgetNs;
  EXPECT_LE(ShareFor(app, {kBudgetNs + 1, 0}), 0.02);
  EXPECT_LE(ShareFor(app, {2 * kBudgetNs, 0}), 0.02);
  EXPECT_EQ(ShareFor(app, {kBudgetNs, 0}), 1);
  // Of a launch of 300 us that nothing evicts five of six residuals are beyond the budget.
  EXPECT_LE(ShareFor(app, {0, 6 * kBudgetNs}), 0.024);
}

// In an M/D/1 queue the median is far below the p99.
TEST(ShiftTest, RandomArrivalsLoseNothingToTheLimitOfPeriodicOnes) {
  double drawn = 0;
  for (const double load : {0.1, 0.3, 0.5, 0.7}) {
    const auto alone_ns = static_cast<int64_t>(P99(load, 0, 0, drawn));
    LcAppView app = App(RateOf(load), alone_ns / 20);
    for (const int64_t eviction_ns : {80'000, 150'000, 300'000}) {
      app.late_delay_ns = kNever;
      const double share = ShareFor(app, {eviction_ns, 0});
      app.late_delay_ns = app.blocking_budget_ns + alone_ns - static_cast<int64_t>(kServiceNs);
      EXPECT_EQ(ShareFor(app, {eviction_ns, 0}), share) << load << ' ' << eviction_ns;
    }
  }
}

TEST(ShiftTest, InALullADelayBeyondTheBudgetRunsInEveryPeriod) {
  LcAppView app = App(1e-6, 50'000);
  ASSERT_LT(ShareFor(app, {0, 400'000}), 1);
  app.lull_delay_ns = 400'000;
  EXPECT_EQ(ShareFor(app, {0, 400'000}), 1);
  EXPECT_EQ(ShareFor(app, {100'000, 300'000}), 1);
  EXPECT_LT(ShareFor(app, {100'000, 300'001}), 1);
  app.tail_rate = 0;
  EXPECT_EQ(ShareFor(app, {400'000, 0}), 1) << "no tail is known";
  EXPECT_EQ(ShareFor(app, {400'001, 0}), 0);
}

// One query in 77 ends a silence, and 0.95 % of all may be late: 0.73 of those few.
TEST(ShiftTest, OfTheFewQueriesBehindASilenceMoreMayBeLate) {
  LcAppView app = App(0, 50'000);
  app.late_delay_ns = 50'000;  // no step is shorter than another
  ASSERT_EQ(ShareFor(app, {400'000, 0}), 0);
  app.first_late_max = 0.73;
  EXPECT_DOUBLE_EQ(ShareFor(app, {400'000, 0}), 0.73) << "each of them is late";
  EXPECT_EQ(ShareFor(app, {50'000, 0}), 1) << "none is";
  EXPECT_NEAR(ShareFor(app, {0, 500'000}), 0.73 / 0.9, 1e-5) << "of nine residuals in ten";
  EXPECT_EQ(ShareFor(app, {0, 150'000}), 1) << "of two in three";
  app.first_late_max = 1;
  EXPECT_EQ(ShareFor(app, {400'000, 0}), 1);
}

// Where half of the steps may wait for 450 us, all are late behind 850 us, and a quarter behind
// 250.
TEST(ShiftTest, AShortStepMayWaitForLonger) {
  LcAppView app = App(0, 50'000);
  app.late_delay_ns = 450'000;
  app.first_late_max = 0.1;
  EXPECT_DOUBLE_EQ(ShareFor(app, {250'000, 0}), 0.4);
  EXPECT_DOUBLE_EQ(ShareFor(app, {450'000, 0}), 0.2);
  EXPECT_DOUBLE_EQ(ShareFor(app, {850'000, 0}), 0.1);
  EXPECT_DOUBLE_EQ(ShareFor(app, {1'850'000, 0}), 0.1);
  double sum = 0;
  constexpr int kResiduals = 1'000;
  for (int i = 0; i < kResiduals; ++i) {
    const double delay_ns = 100'000 + 1e6 * (i + 0.5) / kResiduals;
    sum += std::clamp((delay_ns - 50'000) / 800'000, 0.0, 1.0) / kResiduals;
  }
  EXPECT_NEAR(ShareFor(app, {100'000, 1'000'000}), 0.1 / sum, 1e-4);
}

// What the tail of random arrivals allows stays allowed.
TEST(ShiftTest, SilencesOnlyAdd) {
  LcAppView app = App(1e-6, 50'000);
  const double share = ShareFor(app, {200'000, 0});
  ASSERT_GT(share, 0.01);
  app.late_delay_ns = 50'000;
  const double of_all = ShareFor(app, {200'000, 0});
  app.first_late_max = of_all / 2;
  EXPECT_DOUBLE_EQ(ShareFor(app, {200'000, 0}), of_all);
}

// Two apps of one bound: the shorter lull counts.
TEST(ShiftTest, EveryAppMustHaveALull) {
  std::array<LcAppView, 2> apps = {App(1e-6, 50'000), App(1e-6, 50'000)};
  for (LcAppView& app : apps) app.lull_delay_ns = 400'000;
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  Shifts shifts;
  shifts.Follow(snapshot);
  EXPECT_EQ(shifts.ShareOf({0, 400'000}), 1);
  apps[1].lull_delay_ns = 0;
  shifts.Follow(snapshot);
  EXPECT_LT(shifts.ShareOf({0, 400'000}), 1);
}

TEST(ShiftTest, WhatFitsTheBudgetRunsInEveryPeriod) {
  EXPECT_EQ(ShareFor(App(1e-6, 200'000), {200'000, 0}), 1);
  EXPECT_EQ(ShareFor(App(1e-6, 200'000), {0, 300'000}), 1);  // a query meets half of it
  EXPECT_EQ(ShareFor(App(1e-6, kNever), {kNever / 4, kNever / 4}), 1);
}

TEST(ShiftTest, AnUnknownTailAllowsAllOrNothing) {
  EXPECT_EQ(ShareFor(App(0, 200'000), {200'000, 0}), 1);
  EXPECT_EQ(ShareFor(App(0, 200'000), {200'001, 0}), 0);
  EXPECT_EQ(ShareFor(App(0, 200'000), {100'000, 100'001}), 0);
}

TEST(ShiftTest, ALooserBoundNeverGivesLess) {
  double before = 0;
  for (int64_t budget_ns = 0; budget_ns < 3'000'000; budget_ns += 50'000) {
    const double share = ShareFor(App(1e-6, budget_ns), {300'000, 1'000'000});
    EXPECT_GE(share, before);
    before = share;
  }
  EXPECT_EQ(before, 1);
}

TEST(ShiftTest, TheStrictestAppDecides) {
  const std::array<LcAppView, 2> apps = {App(1e-6, 300'000), App(1e-6, 50'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  const double share = LeastShare(snapshot, {500'000, 0});
  EXPECT_DOUBLE_EQ(share, ShareFor(apps[1], {500'000, 0}));
  EXPECT_GT(share, 0);
}

TEST(ShiftTest, AnHourIsLeftToTheTailAccount) {
  const std::array<LcAppView, 1> apps = {App(1e-6, 200'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  EXPECT_EQ(LeastShare(snapshot, {0, int64_t{3600} * 1'000'000'000}), 0);
  EXPECT_EQ(LeastShare(snapshot, {kNever / 4, 0}), 0);
  EXPECT_FALSE(IsOneOf(snapshot, 0));
}

// The largest share of idle periods moves the p99 by the budget, summed over all waits.
TEST(ShiftTest, TheShareIsTheInverseOfTheSummedShift) {
  const double rate = RateOf(0.5);
  for (const int64_t budget_ns : {20'000, 60'000, 200'000}) {
    const LcAppView app = App(rate, budget_ns);
    for (const int64_t eviction_ns : {0, 30'000, 150'000, 800'000}) {
      for (const int64_t uncuttable_ns : {0, 50'000, 400'000, 3'000'000}) {
        const Delay delay = {eviction_ns, uncuttable_ns};
        const double share = ShareFor(app, delay);
        const double shift_ns = SummedShift(rate, delay, share);
        if (share < 1) {
          EXPECT_NEAR(shift_ns, static_cast<double>(budget_ns), 1e-3 * 200'000);
        } else {
          EXPECT_LE(shift_ns, static_cast<double>(budget_ns) + 1);
        }
        EXPECT_NEAR(static_cast<double>(ShiftLimit(app).ShiftOf(delay)),
                    SummedShift(rate, delay, 1), 2 + 1e-6 * SummedShift(rate, delay, 1));
      }
    }
  }
}

TEST(ShiftTest, WithoutATailAllOfADelayCounts) {
  EXPECT_EQ(ShiftLimit(App(0, 200'000)).ShiftOf({100'000, 50'000}), 150'000);
  EXPECT_EQ(ShiftLimit(App(1e-6, 200'000)).ShiftOf({kNever, 50'000}), kNever);
}

TEST(ShiftTest, TheAppThatMovesMostSaysByHowMuch) {
  const std::array<LcAppView, 2> apps = {App(1e-6, 300'000), App(4e-6, 300'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  Shifts shifts;
  shifts.Follow(snapshot);
  EXPECT_EQ(shifts.ShiftOf({0, 400'000}), ShiftLimit(apps[1]).ShiftOf({0, 400'000}));
  EXPECT_EQ(shifts.ShiftOf({123'456, 0}), 123'456);
}

TEST(ShiftTest, WhatSeveralAppsAllowIsTheLeastOfEach) {
  std::array<LcAppView, 2> apps = {App(1e-6, 300'000), App(1e-6, 50'000)};
  apps[0].uncuttable_budget_ns = 500'000;
  apps[1].uncuttable_budget_ns = 90'000;
  apps[0].late_delay_ns = 700'000;
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  Shifts shifts;
  shifts.Follow(snapshot);
  const Shift shift(snapshot, shifts);
  EXPECT_EQ(shift.limit_ns(), 50'000);
  EXPECT_EQ(shift.longest_uncuttable_ns(), 90'000);
  EXPECT_TRUE(shift.IsInTails(700'000));
  EXPECT_FALSE(shift.IsInTails(700'001));
  EXPECT_TRUE(shift.Allows({50'000, 0}));
  EXPECT_FALSE(shift.Allows({50'001, 0}));
  apps[1].tail_rate = 0;
  shifts.Follow(snapshot);
  EXPECT_FALSE(Shift(snapshot, shifts).IsInTails(1)) << "an unknown tail meets nothing";
}

// 1 ms delays two queries.
TEST(ShiftTest, EachAppWithAShorterBudgetNeedsCredit) {
  std::array<LcAppView, 2> apps = {App(1e-6, 300'000), App(1e-6, kNever)};
  apps[0].load = 0.3;
  apps[0].tail_need_per_ns = 2e-6;
  apps[0].tail_credit = 2.1;
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  EXPECT_TRUE(CreditFor(snapshot, 300'000).covered) << "it fits the budget";
  EXPECT_TRUE(CreditFor(snapshot, 1'000'000).covered);
  const Credit lacks = CreditFor(snapshot, 1'500'000);
  EXPECT_FALSE(lacks.covered);
  EXPECT_DOUBLE_EQ(lacks.need, 3);
  EXPECT_DOUBLE_EQ(lacks.credit, 2.1);
  apps[0].tail_credit = 0.9;
  EXPECT_FALSE(CreditFor(snapshot, 400'000).covered) << "beside a load, one query at least";
  apps[0].load = 0;
  EXPECT_TRUE(CreditFor(snapshot, 400'000).covered);
  apps[0].tail_credit = kTailCreditMax;
  EXPECT_TRUE(CreditFor(snapshot, int64_t{3600} * 1'000'000'000).covered) << "a full account";
  apps[0].tail_need_per_ns = 0;
  EXPECT_FALSE(CreditFor(snapshot, 400'000).covered) << "no account";
}

TEST(ShiftsTest, ARememberedAnswerIsThatOfTheQuestion) {
  std::array<LcAppView, 3> apps = {App(RateOf(0.3), 50'000), App(RateOf(0.5), 80'000),
                                   App(RateOf(0.2), kNever)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  Shifts shifts;
  shifts.Follow(snapshot);
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {  // more questions than are remembered
    const auto eviction_ns = static_cast<int64_t>(random() % 20 * 10'000);
    const auto fixed_ns = static_cast<int64_t>(random() % 10 * 30'000);
    ASSERT_EQ(shifts.ShareOf({eviction_ns, fixed_ns}),
              LeastShare(snapshot, {eviction_ns, fixed_ns}))
        << i;
  }
}

TEST(ShiftsTest, OfAppsWithOneBoundTheOneThatIsLateSoonestDecides) {
  std::array<LcAppView, 4> apps;
  apps.fill(App(RateOf(0.3), 50'000));
  const std::array<int64_t, 4> late_delays_ns = {90'000, kNever, 60'000, 200'000};
  for (size_t a = 0; a < apps.size(); ++a) apps[a].late_delay_ns = late_delays_ns[a];
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  Shifts shifts;
  shifts.Follow(snapshot);
  for (int64_t eviction_ns = 0; eviction_ns <= 300'000; eviction_ns += 20'000) {
    for (const int64_t fixed_ns : {0, 50'000, 400'000}) {
      EXPECT_EQ(shifts.ShareOf({eviction_ns, fixed_ns}),
                LeastShare(snapshot, {eviction_ns, fixed_ns}))
          << eviction_ns << ", " << fixed_ns;
    }
  }
}

TEST(ShiftsTest, AnswersFollowTheTailsAndBudgetsOfTheApps) {
  std::array<LcAppView, 2> apps = {App(RateOf(0.3), 50'000), App(RateOf(0.5), 80'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  Shifts shifts;
  const auto expect_right = [&] {
    shifts.Follow(snapshot);
    for (const int64_t eviction_ns : {20'000, 120'000, 300'000}) {
      EXPECT_EQ(shifts.ShareOf({eviction_ns, 0}), LeastShare(snapshot, {eviction_ns, 0}))
          << eviction_ns;
    }
  };
  expect_right();
  apps[0].tail_rate = RateOf(0.2);
  expect_right();
  apps[0].blocking_budget_ns = 20'000;
  expect_right();
  apps[0].late_delay_ns = 20'000;
  expect_right();
  snapshot.lc_apps = snapshot.lc_apps.first(1);
  expect_right();
  snapshot.lc_apps = {};
  expect_right();
}

}  // namespace
}  // namespace gpushare::core
