// The share of idle periods: against simulated queues, and its limits.

#include "src/core/policies/parts/idle_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

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

double IdleShareFor(const LcAppView& app, int64_t eviction_ns, int64_t fixed_ns) {
  if (app.blocking_budget_ns == kNever) return 1;
  return IdleLimit(app).ShareOf(eviction_ns, fixed_ns);
}

// What IdleShares answers, without its memory.
double IdleShare(const Snapshot& snapshot, int64_t eviction_ns, int64_t fixed_ns) {
  double share = 1;
  for (const LcAppView& app : snapshot.lc_apps) {
    share = std::min(share, IdleShareFor(app, eviction_ns, fixed_ns));
  }
  return share < kIdleShareMin ? 0 : share;
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
      if (vacation_ns > 0 && IdlePeriod(snapshot).IsOneOf(share)) {
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

TEST(IdleShareTest, TheBoundIsReachedAndKeptInSimulatedQueues) {
  double drawn = 0;
  for (const double load : {0.3, 0.5, 0.7}) {
    const double alone_ns = P99(load, 0, 0, drawn);
    for (const double vacation_ns : {0.5e6, 1e6, 1.5e6}) {
      const auto budget_ns = static_cast<int64_t>(0.05 * alone_ns);
      const LcAppView app = App(RateOf(load), budget_ns);
      const double share = IdleShareFor(app, 0, static_cast<int64_t>(vacation_ns));
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
TEST(IdleShareTest, PeriodicQueriesAreLateInOneOfAHundredPeriodsAtMost) {
  constexpr int64_t kBudgetNs = 50'000;
  LcAppView app = App(RateOf(0.5), kBudgetNs);
  EXPECT_GE(IdleShareFor(app, 2 * kBudgetNs, 0), 0.3) << "as if arrivals were random";
  app.late_delay_ns = kBudgetNs;
  EXPECT_LE(IdleShareFor(app, kBudgetNs + 1, 0), 0.02);
  EXPECT_LE(IdleShareFor(app, 2 * kBudgetNs, 0), 0.02);
  EXPECT_EQ(IdleShareFor(app, kBudgetNs, 0), 1);
  // Of a launch of 300 us that nothing evicts five of six residuals are beyond the budget.
  EXPECT_LE(IdleShareFor(app, 0, 6 * kBudgetNs), 0.024);
}

// In an M/D/1 queue the median is far below the p99.
TEST(IdleShareTest, RandomArrivalsLoseNothingToTheLimitOfPeriodicOnes) {
  double drawn = 0;
  for (const double load : {0.1, 0.3, 0.5, 0.7}) {
    const auto alone_ns = static_cast<int64_t>(P99(load, 0, 0, drawn));
    LcAppView app = App(RateOf(load), alone_ns / 20);
    for (const int64_t eviction_ns : {80'000, 150'000, 300'000}) {
      app.late_delay_ns = kNever;
      const double share = IdleShareFor(app, eviction_ns, 0);
      app.late_delay_ns = app.blocking_budget_ns + alone_ns - static_cast<int64_t>(kServiceNs);
      EXPECT_EQ(IdleShareFor(app, eviction_ns, 0), share) << load << ' ' << eviction_ns;
    }
  }
}

TEST(IdleShareTest, WhatFitsTheBudgetRunsInEveryPeriod) {
  EXPECT_EQ(IdleShareFor(App(1e-6, 200'000), 200'000, 0), 1);
  EXPECT_EQ(IdleShareFor(App(1e-6, 200'000), 0, 300'000), 1);  // a query meets half of it
  EXPECT_EQ(IdleShareFor(App(1e-6, kNever), kNever / 4, kNever / 4), 1);
}

TEST(IdleShareTest, AnUnknownTailAllowsAllOrNothing) {
  EXPECT_EQ(IdleShareFor(App(0, 200'000), 200'000, 0), 1);
  EXPECT_EQ(IdleShareFor(App(0, 200'000), 200'001, 0), 0);
  EXPECT_EQ(IdleShareFor(App(0, 200'000), 100'000, 100'001), 0);
}

TEST(IdleShareTest, ALooserBoundNeverGivesLess) {
  double before = 0;
  for (int64_t budget_ns = 0; budget_ns < 3'000'000; budget_ns += 50'000) {
    const double share = IdleShareFor(App(1e-6, budget_ns), 300'000, 1'000'000);
    EXPECT_GE(share, before);
    before = share;
  }
  EXPECT_EQ(before, 1);
}

TEST(IdleShareTest, TheStrictestAppDecides) {
  const std::array<LcAppView, 2> apps = {App(1e-6, 300'000), App(1e-6, 50'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  const double share = IdleShare(snapshot, 500'000, 0);
  EXPECT_DOUBLE_EQ(share, IdleShareFor(apps[1], 500'000, 0));
  EXPECT_GT(share, 0);
}

TEST(IdleShareTest, AnHourIsLeftToTheTailAccount) {
  const std::array<LcAppView, 1> apps = {App(1e-6, 200'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  EXPECT_EQ(IdleShare(snapshot, 0, int64_t{3600} * 1'000'000'000), 0);
  EXPECT_EQ(IdleShare(snapshot, kNever / 4, 0), 0);
  EXPECT_FALSE(IdlePeriod(snapshot).IsOneOf(0));
}

TEST(IdleSharesTest, ARememberedAnswerIsThatOfTheQuestion) {
  std::array<LcAppView, 3> apps = {App(RateOf(0.3), 50'000), App(RateOf(0.5), 80'000),
                                   App(RateOf(0.2), kNever)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  IdleShares shares;
  shares.Follow(snapshot);
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {  // more questions than are remembered
    const auto eviction_ns = static_cast<int64_t>(random() % 20 * 10'000);
    const auto fixed_ns = static_cast<int64_t>(random() % 10 * 30'000);
    ASSERT_EQ(shares.Of(eviction_ns, fixed_ns), IdleShare(snapshot, eviction_ns, fixed_ns)) << i;
  }
}

TEST(IdleSharesTest, OfAppsWithOneBoundTheOneThatIsLateSoonestDecides) {
  std::array<LcAppView, 4> apps;
  apps.fill(App(RateOf(0.3), 50'000));
  const std::array<int64_t, 4> late_delays_ns = {90'000, kNever, 60'000, 200'000};
  for (size_t a = 0; a < apps.size(); ++a) apps[a].late_delay_ns = late_delays_ns[a];
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  IdleShares shares;
  shares.Follow(snapshot);
  for (int64_t eviction_ns = 0; eviction_ns <= 300'000; eviction_ns += 20'000) {
    for (const int64_t fixed_ns : {0, 50'000, 400'000}) {
      EXPECT_EQ(shares.Of(eviction_ns, fixed_ns), IdleShare(snapshot, eviction_ns, fixed_ns))
          << eviction_ns << ", " << fixed_ns;
    }
  }
}

TEST(IdleSharesTest, AnswersFollowTheTailsAndBudgetsOfTheApps) {
  std::array<LcAppView, 2> apps = {App(RateOf(0.3), 50'000), App(RateOf(0.5), 80'000)};
  Snapshot snapshot;
  snapshot.lc_apps = apps;
  IdleShares shares;
  const auto expect_right = [&] {
    shares.Follow(snapshot);
    for (const int64_t eviction_ns : {20'000, 120'000, 300'000}) {
      EXPECT_EQ(shares.Of(eviction_ns, 0), IdleShare(snapshot, eviction_ns, 0)) << eviction_ns;
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
