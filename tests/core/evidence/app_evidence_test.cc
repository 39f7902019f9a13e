// An app's evidence begins at nothing but what the app states.

#include "src/core/evidence/app_evidence.h"

#include <gtest/gtest.h>

#include <utility>

#include "src/core/evidence/evidence.h"

namespace gpushare::core {
namespace {

constexpr TimeNs kNowNs = 70;
constexpr int64_t kMs = 1'000'000;

// What the app before it on its slot left would otherwise be its load, credit or lateness.
TEST(AppEvidenceTest, AnAppBeginsWithoutWhatTheLastOneOnItsSlotLearned) {
  AppEvidence app;
  KernelDesc kernel;
  app.load = {.updated_ns = 7,
              .idle_since_ns = 7,
              .busy = true,
              .only_waits = true,
              .sum = 7,
              .weight = 7,
              .busy_sum = 7,
              .busy_ns = 7,
              .busy_solo_ns = 7};
  app.query_solo_ns = app.queries = 7;
  app.main_kernel.kernel = app.main_kernel.speeds_of = &kernel;
  app.main_kernel.credit_ns = 7;
  app.account.credit = 7;
  app.account.late_for_be = 7;
  app.target.factor = app.target.peak_load = 7;
  app.target.peak_updated_ns = 7;
  app.duty.share = 0.1;
  app.tail.Add(7);
  app.delivered.Add(7);
  app.stands_still = true;
  app.yielded_ns = 7;
  BeginApp(app, 5, {}, kNowNs);
  const AppEvidence fresh;
  EXPECT_EQ(app.load.updated_ns, kNowNs);
  EXPECT_EQ(app.load.idle_since_ns, kNowNs);
  EXPECT_FALSE(app.load.busy || app.load.only_waits);
  EXPECT_EQ(app.load.sum, 0);
  EXPECT_EQ(app.load.weight, 0);
  EXPECT_EQ(app.load.busy_sum, 0);
  EXPECT_EQ(app.load.busy_ns, 0);
  EXPECT_EQ(app.load.busy_solo_ns, 0);
  EXPECT_EQ(app.query_solo_ns, 5) << "as it states";
  EXPECT_EQ(app.queries, 0);
  EXPECT_EQ(app.main_kernel.kernel, nullptr);
  EXPECT_EQ(app.main_kernel.speeds_of, nullptr);
  EXPECT_EQ(app.main_kernel.credit_ns, 0);
  EXPECT_EQ(app.account.credit, 0);
  EXPECT_EQ(app.account.late_for_be, 0);
  EXPECT_EQ(app.account.arrival_ns, kNowNs);
  EXPECT_EQ(app.target.factor, fresh.target.factor);
  EXPECT_EQ(app.target.peak_load, fresh.target.peak_load);
  EXPECT_EQ(app.target.peak_updated_ns, 0);
  EXPECT_EQ(app.duty.share, 1);
  EXPECT_FALSE(app.stands_still);
  EXPECT_EQ(app.yielded_ns, 0);
  EXPECT_EQ(app.tail.quantiles().count, 0);
  EXPECT_EQ(app.delivered.count(), 0);
}

TEST(AppEvidenceTest, AStatedP99SaysThatTheEstimateOfLateQueriesIsRight) {
  AppEvidence app;
  BeginApp(app, 0, {.p99_alone_ns = 900}, kNowNs);
  EXPECT_EQ(app.target.factor, 1);
  EXPECT_EQ(app.target.peak_load, kTargetLoadFloor);
}

// A p99 of 1 ms and a bound of 1.5, with queries and debts.
AppEvidence Served(const Promise& promise) {
  AppEvidence app;
  BeginApp(app, 500'000, promise, 0);
  app.account.credit = -5;
  app.account.gap_ns = 7;
  app.account.queries = 1'000;
  app.account.late_for_be = 7;
  app.target.factor = 7;
  app.duty.share = 0.1;
  ShadowQuery query;
  for (int i = 0; i < kTailQueriesMin; ++i) {
    app.tail.Add(1'000'000);
    app.delivered.Add(1'000'000);
    app.token_distances.Add(1'000'000);
    app.shadow.Begin(i * kMs, 500'000, i * kMs, query);
    app.shadow.End(query, 500'000, i * kMs + 500'000);
  }
  app.tail.Rate({});
  return app;
}

TEST(AppEvidenceTest, AnotherBoundBeginsTheAccountAnewAndKeepsLatencies) {
  const Promise before{.p99_bound = 1.5, .p99_alone_ns = kMs};
  Promise now = before;
  AppEvidence app = Served(before);
  UpdateApp(app, before, now, kNowNs);
  EXPECT_EQ(app.account.credit, -5) << "the same promise changes nothing";
  EXPECT_EQ(app.delivered.count(), kTailQueriesMin);
  now.p99_bound = 2;
  UpdateApp(app, before, now, kNowNs);
  EXPECT_EQ(app.account.credit, 0);
  EXPECT_EQ(app.account.gap_ns, 7);
  EXPECT_EQ(app.account.late_for_be, 7);
  EXPECT_EQ(app.delivered.count(), 0);
  EXPECT_EQ(app.token_distances.count(), 0) << "they were late by the old bound";
  EXPECT_GT(app.shadow.p99_ns(), 0);
  EXPECT_EQ(app.tail.quantiles().count, kTailQueriesMin);
  EXPECT_EQ(app.duty.share, 0.1);
  EXPECT_EQ(app.target.factor, 7);
  const Promise with_target{.target_ns = 9 * kMs, .p99_bound = 2, .p99_alone_ns = kMs};
  UpdateApp(app, now, with_target, kNowNs);
  EXPECT_EQ(app.target.factor, 1);
}

TEST(AppEvidenceTest, AnotherKnownP99AloneIsAnotherModel) {
  const Promise before{.p99_bound = 1.5, .p99_alone_ns = kMs};
  const Promise now{.p99_bound = 1.5, .p99_alone_ns = 3 * kMs};
  AppEvidence app = Served(before);
  UpdateApp(app, before, now, kNowNs);
  EXPECT_EQ(app.account.credit, 0);
  EXPECT_EQ(app.delivered.count(), 0);
  EXPECT_EQ(app.shadow.p99_ns(), 0);
  EXPECT_EQ(app.tail.quantiles().count, 0);
  EXPECT_EQ(app.duty.share, 1);
  EXPECT_EQ(app.query_solo_ns, 500'000) << "durations are learned by themselves";
  app = Served({.p99_bound = 1.5});
  UpdateApp(app, {.p99_bound = 1.5}, before, kNowNs);
  EXPECT_GT(app.shadow.p99_ns(), 0) << "that it is known now makes no other model";
}

TEST(AppEvidenceTest, ABoundIsLostUntilAQueryTakesNoLongerThanTheStatedP99) {
  const Promise stated{.p99_bound = 1.5, .p99_alone_ns = kMs};
  AppEvidence app = Served(stated);
  for (const auto& [solo_ns, lost] :
       {std::pair{1'400'000, false}, {1'600'000, true}, {1'200'000, true}, {900'000, false}}) {
    app.query_solo_ns = solo_ns;
    NoteBoundLost(app, stated, kNowNs);
    EXPECT_EQ(app.bound_lost, lost) << solo_ns;
    EXPECT_EQ(PromiseInForce(app, stated).p99_alone_ns, lost ? 0 : kMs) << "no shadow knows it yet";
  }
}

// A query of 2 ms that yields for 5 ms: what BE work may do is judged without these.
TEST(AppEvidenceTest, TimeThatAnAppYieldsCountsAsNoDelay) {
  Evidence evidence;
  AppEvidence app;
  const Promise promise = {.p99_bound = 1.5, .p99_alone_ns = 4 * kMs};
  BeginApp(app, 2 * kMs, promise, 0);
  Yield(app, true, 10 * kMs, 10 * kMs);
  Yield(app, false, kNever, 13 * kMs);  // before the query
  ShadowQuery shadow;
  evidence.QueryBegan(app, {.now_ns = 20 * kMs, .arrival_ns = 20 * kMs, .since_ns = 20 * kMs},
                      shadow);
  Yield(app, true, 21 * kMs, 22 * kMs);
  EXPECT_EQ(app.shadow.LagNs(25 * kMs - YieldedNs(app, 25 * kMs)), 0);
  Yield(app, true, 21 * kMs, 25 * kMs);  // another plan
  Yield(app, false, kNever, 26 * kMs);
  EXPECT_EQ(YieldedNs(app, 30 * kMs), 8 * kMs);
  evidence.QueryEnded(app, {.now_ns = 27 * kMs,
                            .arrival_ns = 20 * kMs,
                            .ended_ns = 27 * kMs,
                            .shadow = shadow,
                            .solo_ns = 2 * kMs,
                            .done_ns = 2 * kMs,
                            .promise = promise,
                            .last = true});
  EXPECT_EQ(app.late_not_alone, 0);
  EXPECT_NEAR(static_cast<double>(app.delivered.Quantile(0.5)), 7 * kMs, 0.2 * kMs);
  EXPECT_EQ(app.delivered.late(), 1) << "it was late for its caller";
  EXPECT_LT(app.account.late_share, kLateOfP99) << "and not for BE work";
}

}  // namespace
}  // namespace gpushare::core
