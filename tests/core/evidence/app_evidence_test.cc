// An app's evidence begins at nothing but what the app states.

#include "src/core/evidence/app_evidence.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

constexpr TimeNs kNowNs = 70;

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
  EXPECT_EQ(app.tail.quantiles().count, 0);
  EXPECT_EQ(app.delivered.count(), 0);
}

TEST(AppEvidenceTest, AStatedP99SaysThatTheEstimateOfLateQueriesIsRight) {
  AppEvidence app;
  BeginApp(app, 0, {.p99_alone_ns = 900}, kNowNs);
  EXPECT_EQ(app.target.factor, 1);
  EXPECT_EQ(app.target.peak_load, kTargetLoadFloor);
}

}  // namespace
}  // namespace gpushare::core
