// What each call of the learn stage adds to the estimators, by worked examples.

#include "src/core/evidence/evidence.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/core/forwarding_model.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

class EvidenceTest : public ::testing::Test {
 protected:
  EvidenceTest() {
    for (AppEvidence& app : apps) BeginApp(app, kMs, {}, 0);
  }

  ShadowQuery Begin(AppEvidence& app, TimeNs now_ns, bool meets_credit = false) {
    ShadowQuery shadow;
    evidence.QueryBegan(
        app,
        {.now_ns = now_ns, .arrival_ns = now_ns, .since_ns = now_ns, .meets_credit = meets_credit},
        shadow);
    return shadow;
  }
  EndedQuery Ended(const ShadowQuery& shadow, TimeNs now_ns) {
    return {.now_ns = now_ns,
            .arrival_ns = shadow.arrival_ns,
            .ended_ns = now_ns,
            .shadow = shadow,
            .solo_ns = kMs,
            .done_ns = kMs};
  }
  void End(AppEvidence& app, const ShadowQuery& shadow, TimeNs now_ns) {
    evidence.QueryEnded(app, Ended(shadow, now_ns));
  }

  std::array<AppEvidence, 2> apps;
  Evidence evidence;
};

TEST_F(EvidenceTest, QueriesAreCountedByAppAndInAll) {
  const ShadowQuery a = Begin(apps[0], 0);
  const ShadowQuery b = Begin(apps[0], 0);
  const ShadowQuery c = Begin(apps[1], 0);
  EXPECT_EQ(evidence.queries, 3);
  EXPECT_EQ(evidence.apps_with_queries, 2);
  End(apps[0], a, kMs);
  EXPECT_EQ(evidence.apps_with_queries, 2);
  End(apps[0], b, 2 * kMs);
  EXPECT_EQ(evidence.apps_with_queries, 1);
  End(apps[1], c, 3 * kMs);
  EXPECT_EQ(evidence.queries, 0);
  EXPECT_EQ(evidence.apps_with_queries, 0);
}

// Both queries are late and would not be alone. BE work left the device 200 us after the first
// began, so it made no query 2 ms late: the host may have.
TEST_F(EvidenceTest, BeWorkDelaysAQueryByNoMoreThanItStayed) {
  const Promise promise = {.p99_bound = 1.05, .p99_alone_ns = kMs};
  AppEvidence& app = apps[0];
  const auto late_by = [&](TimeNs at_ns, TimeNs delay_ns, bool disturbed) {
    const ShadowQuery shadow = Begin(app, at_ns);
    evidence.BePartEnded({.now_ns = at_ns + 200 * kUs});
    EndedQuery end = Ended(shadow, at_ns + kMs + delay_ns);
    end.promise = promise;
    end.disturbed = disturbed;
    evidence.QueryEnded(app, end);
  };
  late_by(10 * kMs, 2 * kMs, false);
  EXPECT_EQ(app.slack.share, 1);
  EXPECT_EQ(app.late_not_alone, 1);
  late_by(20 * kMs, 100 * kUs, false);
  const double share = app.slack.share;
  EXPECT_LT(share, 1);
  late_by(30 * kMs, 2 * kMs, true);
  EXPECT_LT(app.slack.share, share) << "BE work ran beside it, and nobody knows what that cost";
}

// A host loop that sees the end of a step before the flow does submits the next one meanwhile.
TEST_F(EvidenceTest, AFastLoopOfStepsShowsItsGaps) {
  AppEvidence& app = apps[0];
  TimeNs now_ns = 0;
  for (int period = 0; period < 20; ++period) {
    now_ns += 50 * kMs;
    ShadowQuery shadow = Begin(app, now_ns);
    for (int step = 0; step < 50; ++step) {
      const TimeNs ended_ns = now_ns + kMs;
      now_ns = ended_ns + 20 * kUs;
      const bool last = step == 49;
      const ShadowQuery next = last ? ShadowQuery() : Begin(app, now_ns);
      EndedQuery end = Ended(shadow, now_ns + 10 * kUs);
      end.ended_ns = ended_ns;
      end.last = last;
      evidence.QueryEnded(app, end);
      shadow = next;
    }
  }
  EXPECT_GE(app.steps.learnt_ns(), 20 * kUs);
  EXPECT_LE(app.steps.SilenceShare(), 0.03);
}

// Of an app whose bound counts tokens, a query is late by the longest distance that it ends. One
// without a token is no sample.
TEST_F(EvidenceTest, ABoundOnTokensJudgesDistances) {
  AppEvidence& app = apps[0];
  TimeNs now_ns = 0;
  const auto query = [&](int64_t latency_ns, int64_t distance_ns) {
    now_ns += 10 * kMs;
    const ShadowQuery shadow = Begin(app, now_ns);
    evidence.BePartEnded({.now_ns = now_ns + kMs});
    EndedQuery end = Ended(shadow, now_ns + latency_ns);
    end.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
    end.bounds_tokens = true;
    end.distance_ns = distance_ns;
    evidence.QueryEnded(app, end);
    now_ns += latency_ns;
  };
  query(5 * kMs, 0);
  EXPECT_EQ(app.account.queries, 0) << "it gave no token";
  query(3 * kMs / 2, 3 * kMs);
  EXPECT_EQ(app.account.queries, 1);
  EXPECT_EQ(app.late_not_alone, 0);
  EXPECT_EQ(app.slack.share, 1);
  query(3 * kMs / 2, 4 * kMs);  // 3.5 ms without the half that the query lost
  EXPECT_EQ(app.late_not_alone, 1);
  EXPECT_LT(app.slack.share, 1);
  query(kMs, 4 * kMs);
  EXPECT_EQ(app.late_not_alone, 1) << "the host was late";
}

// A stated p99 alone of distances says nothing of how long queries take.
TEST_F(EvidenceTest, LongQueriesLoseNoBoundOnTokens) {
  AppEvidence& app = apps[0];
  app.query_solo_ns = 20 * kMs;
  app.account.credit = 5;
  for (int i = 1; i <= 2; ++i) {
    const ShadowQuery shadow = Begin(app, i * 1000 * kMs);
    EndedQuery end = Ended(shadow, shadow.arrival_ns + 200 * kMs);
    end.promise = {.p99_bound = 1.2, .p99_alone_ns = 30 * kMs};
    end.solo_ns = end.done_ns = 200 * kMs;
    end.bounds_tokens = true;
    evidence.QueryEnded(app, end);
  }
  EXPECT_GT(app.query_solo_ns, 36 * kMs);
  EXPECT_FALSE(app.bound_lost);
  EXPECT_EQ(app.account.credit, 5);
}

// A query that gives no token keeps no bound and misses none.
TEST_F(EvidenceTest, ATrialWaitsForQueriesThatGiveTokens) {
  FollowPlan(evidence.trial, 0, 0, 0);
  const auto query = [&](int64_t latency_ns, int64_t distance_ns) {
    const ShadowQuery shadow = Begin(apps[0], 10 * kMs);
    EndedQuery end = Ended(shadow, shadow.arrival_ns + latency_ns);
    end.promise = {.p99_bound = 1.2, .p99_alone_ns = 30 * kMs};
    end.bounds_tokens = true;
    end.distance_ns = distance_ns;
    end.trial_kernel = 0;
    evidence.QueryEnded(apps[0], end);
  };
  const double credit = evidence.trial.credit;
  query(200 * kMs, 0);
  EXPECT_EQ(evidence.trial.left, kTrialQueries);
  EXPECT_EQ(evidence.trial.credit, credit);
  query(50 * kMs, 20 * kMs);
  EXPECT_EQ(evidence.trial.left, kTrialQueries - 1);
  EXPECT_GE(evidence.trial.credit, credit + 1) << "its distance is within the bound";
  const double earned = evidence.trial.credit;
  query(kMs, 50 * kMs);
  EXPECT_LT(evidence.trial.credit, earned + 1);
}

TEST_F(EvidenceTest, AQueryWithoutATokenIsNoneOnTime) {
  const ShadowQuery shadow = Begin(apps[0], kMs);
  EndedQuery end = Ended(shadow, 2 * kMs);
  end.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
  end.bounds_tokens = true;
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].slack.queries, 0);
}

// BE work makes a prefill of another request 20 ms late. The step behind it meets nothing, and the
// distance that it ends is as much longer.
TEST_F(EvidenceTest, ADistanceIsLateForWhatDelayedTheQueriesInIt) {
  AppEvidence& app = apps[0];
  TimeNs now_ns = 0;
  const auto query = [&](int64_t delay_ns, int64_t distance_ns, bool waits = false) {
    const ShadowQuery shadow = Begin(app, now_ns);
    if (delay_ns > 0) evidence.BePartEnded({.now_ns = now_ns + delay_ns});
    now_ns += kMs + delay_ns;
    EndedQuery end = Ended(shadow, now_ns);
    end.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
    end.bounds_tokens = true;
    end.distance_ns = distance_ns;
    end.waited = waits;
    evidence.QueryEnded(app, end);
    now_ns += kMs;
  };
  query(0, 2 * kMs);
  query(20 * kMs, 0);
  query(0, 23 * kMs);
  EXPECT_EQ(app.late_not_alone, 1);
  EXPECT_LT(app.slack.share, 1) << "for BE work";
  EXPECT_EQ(app.slack.late_alone, 0);
  const double share = app.slack.share;
  query(0, 23 * kMs);
  EXPECT_EQ(app.late_not_alone, 1) << "nothing was delayed since the last token";
  EXPECT_GT(app.slack.share, share);
  EXPECT_GT(app.slack.late_alone, 0);
}

// The step begins behind a prefill that BE work made 3 ms late, and inherits these 3 ms.
TEST_F(EvidenceTest, WhatAQueryInheritsOfTheOneBeforeItCountsOnce) {
  AppEvidence& app = apps[0];
  const ShadowQuery prefill = Begin(app, 0);
  const ShadowQuery step = Begin(app, 0);
  evidence.BePartEnded({.now_ns = 3 * kMs});
  EndedQuery end = Ended(prefill, 4 * kMs);
  end.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
  end.bounds_tokens = true;
  evidence.QueryEnded(app, end);
  end = Ended(step, 5 * kMs);
  end.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
  end.bounds_tokens = end.waited = true;
  end.distance_ns = 7 * kMs;  // 4 ms without the 3
  evidence.QueryEnded(app, end);
  EXPECT_EQ(app.late_not_alone, 0);
}

// The late token is a hit of the task on credit that its prefill met.
TEST_F(EvidenceTest, ADistanceSpendsTheCreditThatAQueryInItMet) {
  AppEvidence& app = apps[0];
  app.account.credit = 5;
  const auto query = [&](TimeNs at_ns, int64_t distance_ns, bool meets_credit) {
    const ShadowQuery shadow = Begin(app, at_ns, meets_credit);
    EndedQuery end = Ended(shadow, at_ns + kMs);
    end.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
    end.bounds_tokens = true;
    end.distance_ns = distance_ns;
    evidence.QueryEnded(app, end);
  };
  query(10 * kMs, 0, true);
  query(20 * kMs, 11 * kMs, false);
  EXPECT_LT(app.account.credit, 5);
  EXPECT_EQ(app.account.late_for_be, 1);
  EXPECT_EQ(app.tail.quantiles().count, 0);
  query(30 * kMs, 10 * kMs, false);
  EXPECT_EQ(app.account.late_for_be, 1);
}

// Two apps make each other late, and no BE work has run.
TEST_F(EvidenceTest, OtherLcAppsAreNoBeWork) {
  const ShadowQuery shadow = Begin(apps[0], kMs);
  EndedQuery end = Ended(shadow, 5 * kMs);
  end.promise = {.p99_bound = 1.05, .p99_alone_ns = kMs};
  end.disturbed = true;
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].slack.share, 1);
}

// A thread that runs one step after the other begins a query when the one before it has ended, and
// says when it arrived.
TEST_F(EvidenceTest, AQueryThatTheHostBeginsLateWaitedForBeWorkToo) {
  const Promise promise = {.p99_bound = 1.05, .p99_alone_ns = kMs};
  const ShadowQuery first = Begin(apps[0], 10 * kMs);
  evidence.BePartEnded({.now_ns = 15 * kMs});
  EndedQuery end = Ended(first, 16 * kMs);
  end.promise = promise;
  evidence.QueryEnded(apps[0], end);
  const double share = apps[0].slack.share;
  ASSERT_LT(share, 1);
  ShadowQuery second;
  evidence.QueryBegan(apps[0], {.now_ns = 16 * kMs, .arrival_ns = 13 * kMs, .since_ns = 16 * kMs},
                      second);
  end = Ended(second, 17 * kMs);
  end.promise = promise;
  evidence.QueryEnded(apps[0], end);
  EXPECT_LT(apps[0].slack.share, share);
}

TEST_F(EvidenceTest, ALateQueryThatMetCreditTakesNothingFromTheSlack) {
  const ShadowQuery shadow = Begin(apps[0], kMs, true);
  evidence.BePartEnded({.now_ns = 2 * kMs});
  EndedQuery end = Ended(shadow, 3 * kMs);
  end.promise = {.p99_bound = 1.05, .p99_alone_ns = kMs};
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].late_not_alone, 1);
  EXPECT_EQ(apps[0].slack.share, 1);
}

// Two milliseconds of a lull fit between the p99 of its queue and the limit. Both 4 queries of the
// returning load and its first 16 say that there is none.
TEST_F(EvidenceTest, ALullLeavesWhatTheLimitIsBeyondItsQueue) {
  const ForwardingModel model(nullptr);
  const Promise promise = {.p99_bound = 1.05, .p99_alone_ns = 5 * kMs};
  const std::array<LcAppFacts, 1> facts = {LcAppFacts{.evidence = apps.data()}};
  TimeNs now_ns = 0;
  const auto after = [&](int queries, TimeNs gap_ns) {
    for (int i = 0; i < queries; ++i) {
      now_ns += gap_ns;
      EndedQuery end = Ended(Begin(apps[0], now_ns), now_ns + kMs);
      end.promise = promise;
      end.last = true;
      evidence.QueryEnded(apps[0], end);
    }
    now_ns += kMs;
    std::array<LcAppView, 1> views;
    views[0].promise = promise;
    evidence.View(facts, model, now_ns, absl::MakeSpan(views));
    return views[0].lull_delay_ns;
  };
  EXPECT_EQ(after(100, 3 * kMs / 2), 0);
  const int64_t in_lull = after(kSamples, 20 * kMs);
  EXPECT_GT(in_lull, 2 * kMs);
  EXPECT_LT(in_lull, 5 * kMs * 21 / 20 - kMs);
  EXPECT_EQ(after(kSamples / 4 + 1, 3 * kMs / 2), 0);
}

// The first query ends 30 us late and the one behind it 50 us, of which 10 us are a launch.
TEST_F(EvidenceTest, TheDelayOfAnEvictionIsThatOfTheSlowestQueriesBehindIt) {
  EvictionDelay& delay = apps[0].eviction;
  const auto busy_period = [&](TimeNs at_ns, KernelId evicted) {
    const ShadowQuery first = Begin(apps[0], at_ns);
    const ShadowQuery second = Begin(apps[0], at_ns);
    delay.evicted = evicted;
    delay.launch_ns = 10 * kUs;
    End(apps[0], first, at_ns + kMs + 30 * kUs);
    EXPECT_FALSE(delay.counts);
    EndedQuery end = Ended(second, at_ns + 2 * kMs + 50 * kUs);
    end.now_ns += 20 * kUs;  // the flow hears of it
    end.waited = true;
    evidence.QueryEnded(apps[0], end);
  };
  busy_period(0, KernelId{7});
  EXPECT_TRUE(delay.counts) << "it waited, and it is not known which are slow";
  EXPECT_EQ(delay.delay_ns, 40 * kUs);
  for (int i = 1; i < 200; ++i) busy_period(i * 10 * kMs, KernelId{7});
  EXPECT_GT(apps[0].shadow.slow_ns(), 0);
  EXPECT_TRUE(delay.counts);
  busy_period(3'000 * kMs, KernelId());
  EXPECT_FALSE(delay.counts) << "nothing was evicted";
}

// Then one that did not wait is among the slowest.
TEST_F(EvidenceTest, WhereNobodyWaitsTheFirstQueryCounts) {
  EvictionDelay& delay = apps[0].eviction;
  for (int i = 0; i < 300; ++i) {
    const ShadowQuery query = Begin(apps[0], i * 10 * kMs);
    delay.evicted = KernelId{7};
    End(apps[0], query, i * 10 * kMs + kMs + 30 * kUs);
    EXPECT_EQ(delay.counts, apps[0].shadow.slow_ns() > 0) << i;
  }
  EXPECT_TRUE(delay.counts);
}

TEST_F(EvidenceTest, AnotherKernelThatTheLaunchesMetIsNotBlamed) {
  EvictionDelay& delay = apps[0].eviction;
  delay.evicted = KernelId{7};
  NoteMet(delay, KernelId());
  NoteMet(delay, KernelId{7});
  EXPECT_EQ(delay.evicted, KernelId{7});
  NoteMet(delay, KernelId{8});
  EXPECT_FALSE(delay.evicted);
}

TEST_F(EvidenceTest, GapsBetweenLaunchesAreAMean) {
  EXPECT_EQ(GapsOf(apps[0], 5), 0) << "not known yet";
  NoteLaunchGap(apps[0], 4 * kUs);
  EXPECT_EQ(GapsOf(apps[0], 5), 16 * kUs);
  EXPECT_EQ(GapsOf(apps[0], 1), 0);
  EXPECT_EQ(GapsOf(apps[0], 0), 0);
  for (int i = 0; i < 200; ++i) NoteLaunchGap(apps[0], kUs);
  EXPECT_NEAR(static_cast<double>(GapsOf(apps[0], 5)), 4e3, 100);
}

// A query that met a task on credit does not count in the tail of the app's own latencies.
TEST_F(EvidenceTest, AllQueriesOfABusyPeriodMeetATaskOnCredit) {
  const ShadowQuery before = Begin(apps[0], 0);
  evidence.BePartBegan({.begins_credit = true});
  const ShadowQuery after = Begin(apps[1], kUs);
  EndedQuery late = Ended(before, 10 * kMs);
  late.promise.target_ns = 2 * kMs;
  evidence.QueryEnded(apps[0], late);
  EXPECT_EQ(apps[0].account.late_for_be, 1) << "active when the task began";
  late = Ended(after, 20 * kMs);
  late.promise.target_ns = 2 * kMs;
  evidence.QueryEnded(apps[1], late);
  EXPECT_EQ(apps[1].account.late_for_be, 1) << "began beside it";
  const ShadowQuery next = Begin(apps[0], 30 * kMs);
  late = Ended(next, 40 * kMs);
  late.promise.target_ns = 2 * kMs;
  evidence.QueryEnded(apps[0], late);
  EXPECT_EQ(apps[0].account.late_for_be, 1) << "the busy period is over, and so is the task";
}

TEST_F(EvidenceTest, ATaskOnCreditThatBeganInIdleTimeMeetsTheNextQuery) {
  evidence.BePartBegan({.begins_credit = true});
  EXPECT_FALSE(evidence.busy_on_credit) << "no query is active";
  const ShadowQuery query = Begin(apps[0], 0, /*meets_credit=*/true);
  EXPECT_TRUE(evidence.busy_on_credit);
  End(apps[0], query, kMs);
  EXPECT_FALSE(evidence.busy_on_credit);
}

// Alone the second query ends at 2 ms, after 2 ms. 1 ms of BE work makes it 3 ms; the limit is 2.5.
TEST_F(EvidenceTest, AQueryIsLateNotAloneIfItsShadowKeepsTheLimit) {
  const ShadowQuery first = Begin(apps[0], 0);
  const ShadowQuery second = Begin(apps[0], 0);
  EndedQuery end = Ended(first, 2 * kMs);
  end.promise.target_ns = 5 * kMs / 2;
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].late_not_alone, 0) << "it kept the limit";
  EXPECT_EQ(apps[0].shadow.LagNs(2 * kMs), kMs);
  end = Ended(second, 3 * kMs);
  end.promise.target_ns = 5 * kMs / 2;
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].late_not_alone, 1);
  // Three at once are late alone too: the third one ends after 3 ms.
  std::array<ShadowQuery, 3> burst;
  for (ShadowQuery& query : burst) query = Begin(apps[0], 10 * kMs);
  for (int64_t i = 0; i < 3; ++i) {
    end = Ended(burst[static_cast<size_t>(i)], (11 + i) * kMs);
    end.promise.target_ns = 5 * kMs / 2;
    evidence.QueryEnded(apps[0], end);
  }
  EXPECT_EQ(apps[0].late_not_alone, 1);
}

// The size says 3 ms, the mean of the app 1 ms.
TEST_F(EvidenceTest, AQueryWithASizeCountsWithItsPrediction) {
  ShadowQuery shadow;
  evidence.QueryBegan(apps[0], {.now_ns = 0, .arrival_ns = 0, .sized_ns = 3 * kMs}, shadow);
  EXPECT_EQ(shadow.end_ns, 3 * kMs);
  evidence.QueryBegan(apps[1], {.now_ns = 0, .arrival_ns = 0}, shadow);
  EXPECT_EQ(shadow.end_ns, kMs);
}

// What ran beside BE work says nothing of its time alone: then its prediction counts.
TEST_F(EvidenceTest, ADisturbedQueryCountsAsPredictedInTheShadow) {
  const ShadowQuery query = Begin(apps[0], 0);
  EndedQuery end = Ended(query, 4 * kMs);
  end.done_ns = 3 * kMs;
  end.disturbed = true;
  end.promise.target_ns = 2 * kMs;
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].late_not_alone, 1) << "1 ms alone";
  const ShadowQuery next = Begin(apps[0], 10 * kMs);
  end = Ended(next, 14 * kMs);
  end.done_ns = 3 * kMs;
  end.promise.target_ns = 2 * kMs;
  evidence.QueryEnded(apps[0], end);
  EXPECT_EQ(apps[0].late_not_alone, 1) << "nothing disturbed it, and it took 3 ms alone";
}

TEST_F(EvidenceTest, ASoloRunCountsOnceItWasMeasured) {
  KernelDesc kernel;
  kernel.id = KernelId{7};
  EXPECT_FALSE(HasKnownDuration(evidence.solo_runs, kernel));
  evidence.BePartBegan({.kernel = kernel.id, .asks_for_solo_run = true});
  evidence.BePartEnded({.now_ns = kMs, .work_ns = 1e6, .kernel = &kernel, .measured_alone = true});
  EXPECT_TRUE(HasKnownDuration(evidence.solo_runs, kernel));
  EXPECT_EQ(evidence.be_left_ns, kMs);
}

TEST_F(EvidenceTest, OpaqueWorkThatRanAloneHasNoKernelToCount) {
  evidence.BePartEnded({.now_ns = kMs, .work_ns = 1e6, .kernel = nullptr, .measured_alone = true});
  EXPECT_EQ(evidence.be_left_ns, kMs);
}

TEST_F(EvidenceTest, ThePlansArrangementIsInForceAndItsTrialEndsWithoutIt) {
  Plan plan;
  plan.arrangement = {.split = 3, .trial_kernel = 2, .segments = SegmentsRun::kOnSplit};
  evidence.PlanMade(plan, kMs);
  EXPECT_EQ(evidence.trial.split, 3);
  EXPECT_EQ(evidence.in_force, plan.arrangement);
  evidence.TrialEnded(2 * kMs);
  EXPECT_EQ(evidence.trial.split, kNoSplit);
  EXPECT_EQ(evidence.in_force, (ArrangementInForce{.split = 3, .segments = SegmentsRun::kOnSplit}));
  plan.Clear();
  evidence.PlanMade(plan, 3 * kMs);
  EXPECT_EQ(evidence.in_force, ArrangementInForce()) << "a plan that states nothing ends it";
}

// The others of the time in which one graph ends: each that is known gains what it did.
TEST_F(EvidenceTest, AnIntervalCountsForAllKnownGraphsBeside) {
  std::array<KernelDesc, 3> graphs;
  for (uint32_t i = 0; i < 3; ++i) graphs[i].id = KernelId{i + 1};
  graphs[0].solo_hint_ns = graphs[1].solo_hint_ns = kMs;
  Plan plan;
  plan.Clear();
  plan.arrangement.segments = SegmentsRun::kBesideQueries;
  evidence.PlanMade(plan, 0);
  const std::array<const KernelDesc*, 2> beside = {&graphs[1], &graphs[2]};
  const double before = GainOf(evidence.segment_gains, graphs[2].id, 100 * kMs);
  End(apps[0], Begin(apps[0], 0), 90 * kMs);
  evidence.BePartEnded({.now_ns = 100 * kMs,
                        .launched_ns = 0,
                        .work_ns = 50e6,
                        .kernel = graphs.data(),
                        .in_segments = true,
                        .graphs_beside = beside});
  // 50 ms of BE work and 1 ms of LC work in 100 ms: a loss, for both that are known.
  EXPECT_LT(GainOf(evidence.segment_gains, graphs[0].id, 100 * kMs), before);
  EXPECT_EQ(GainOf(evidence.segment_gains, graphs[1].id, 100 * kMs),
            GainOf(evidence.segment_gains, graphs[0].id, 100 * kMs));
  EXPECT_EQ(GainOf(evidence.segment_gains, graphs[2].id, 100 * kMs), before);
}

// The first kernel's predictions leave with it.
// A batch of another size counts after some hundred launches, whatever came before.
TEST(MainKernelTest, ItsTimeFollowsItsLatePredictions) {
  MainKernel main;
  KernelDesc kernel;
  for (int i = 0; i < 100'000; ++i) VoteMainKernel(main, kernel, 100);
  EXPECT_EQ(MeanPredictedNs(main), 100);
  for (int i = 0; i < 500; ++i) VoteMainKernel(main, kernel, 400);
  EXPECT_NEAR(static_cast<double>(MeanPredictedNs(main)), 400, 10);
}

TEST(MainKernelTest, ItsTimeIsTheMeanOfItsPredictions) {
  MainKernel main;
  EXPECT_EQ(MeanPredictedNs(main), 0);
  const KernelDesc one;
  const KernelDesc other;
  VoteMainKernel(main, one, 100);
  VoteMainKernel(main, one, 300);
  EXPECT_EQ(MeanPredictedNs(main), 200);
  EXPECT_TRUE(VoteMainKernel(main, other, 1'000));
  EXPECT_EQ(MeanPredictedNs(main), 1'000);
}

}  // namespace
}  // namespace gpushare::core
