// An app's guarantee, read through the C API: what it was promised, what it got, and what held BE.
// On the simulated device, in virtual time.

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class GuaranteeTest : public ::testing::Test {
 protected:
  void Open(double p99_bound, double p50_bound, int64_t p99_alone_ns, int64_t target_ns = 0) {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "bounded");
    options.p99_bound = p99_bound;
    options.p50_bound = p50_bound;
    options.p99_alone_ns = p99_alone_ns;
    options.target_ns = target_ns;
    ASSERT_OK(gpushare_app_create(api_.runtime, &options, &app_));
    ASSERT_OK(gpushare_queue_create(app_, &queue_));
  }
  void TearDown() override {
    EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
    EXPECT_OK(gpushare_queue_release(queue_));
    EXPECT_OK(gpushare_app_release(app_));
    api_.Close();
  }
  // One after the other; the length of the last one.
  int64_t RunQueries(int queries) {
    int64_t latency_ns = 0;
    for (int i = 0; i < queries; ++i) {
      const gpushare_task_options task = api_.LcTask();
      gpushare_ticket ticket = {0};
      EXPECT_OK(gpushare_submit_lc(queue_, &task, &ticket));
      const gpushare_completion_record record = api_.Finish(ticket);
      latency_ns = record.complete_ns - record.submit_ns;
    }
    return latency_ns;
  }
  std::string Metrics() const {
    size_t size = 0;
    gpushare_metrics_text(api_.runtime, nullptr, 0, &size);
    std::string text(size, '\0');
    EXPECT_OK(gpushare_metrics_text(api_.runtime, text.data(), text.size(), &size));
    return text;
  }
  static gpushare_app_guarantee Of(gpushare_app* app) {
    gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
    EXPECT_OK(gpushare_app_guarantee_get(app, &guarantee));
    return guarantee;
  }

  Api api_;
  gpushare_app* app_ = nullptr;
  gpushare_queue* queue_ = nullptr;
};

TEST_F(GuaranteeTest, SaysWhatAnLcAppWasPromisedAndGot) {
  Open(1.5, 1.1, kMs);
  EXPECT_EQ(Of(app_).queries, 0);
  EXPECT_EQ(Of(app_).p99_over_alone_known, 0);
  EXPECT_EQ(Of(app_).late_share_known, 0) << "no query has ended";
  const int64_t latency_ns = RunQueries(200);
  const gpushare_app_guarantee guarantee = Of(app_);
  EXPECT_EQ(guarantee.app_class, GPUSHARE_CLASS_LATENCY_CRITICAL);
  EXPECT_EQ(guarantee.p99_bound, 1.5);
  EXPECT_EQ(guarantee.p50_bound, 1.1);
  EXPECT_EQ(guarantee.queries, 200);
  EXPECT_NEAR(static_cast<double>(guarantee.p50_ns), static_cast<double>(latency_ns),
              0.03 * static_cast<double>(latency_ns));
  EXPECT_NEAR(guarantee.p99_over_alone, static_cast<double>(latency_ns) / kMs, 0.03);
  EXPECT_EQ(guarantee.late_share, 0);
  EXPECT_EQ(guarantee.p99_alone_ns, kMs);
  EXPECT_EQ(guarantee.p99_over_alone_known, 1);
  EXPECT_EQ(guarantee.late_share_known, 1);
  EXPECT_GT(guarantee.tail_credit, 0);
  EXPECT_EQ(guarantee.queries_late_for_be, 0);
}

// Nothing runs beside the queries, so each takes what one takes alone.
TEST_F(GuaranteeTest, MetricsCompareTheMedianWithOneQueryAlone) {
  Open(1.5, 1.1, kMs);
  RunQueries(200);
  const std::string text = Metrics();
  const size_t sample = text.find("\ngpushare_app_recent_p50_over_solo{");
  ASSERT_NE(sample, std::string::npos);
  const size_t line = text.find("app=\"bounded\"", sample);
  ASSERT_NE(line, std::string::npos);
  EXPECT_NEAR(std::stod(text.substr(text.find("} ", line) + 2)), 1, 0.1);
}

// A dashboard must not be green because nothing is known.
TEST_F(GuaranteeTest, WithoutAP99AloneItSaysThatLatenessIsUnknown) {
  Open(1.5, 0, 0);
  RunQueries(50);
  EXPECT_EQ(Of(app_).p99_over_alone_known, 0);
  EXPECT_EQ(Of(app_).late_share_known, 0);
  const auto has_sample = [&](const std::string& family) {
    return Metrics().find("\n" + family + "{") != std::string::npos;
  };
  EXPECT_FALSE(has_sample("gpushare_app_recent_p99_over_alone"));
  EXPECT_FALSE(has_sample("gpushare_app_recent_late_ratio"));
  EXPECT_TRUE(has_sample("gpushare_app_recent_p99_seconds"));
  gpushare_app_update_options update = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  update.fields = GPUSHARE_APP_FIELD_TARGET_NS;
  update.target_ns = 5 * kMs;
  ASSERT_OK(gpushare_app_update(app_, &update));
  RunQueries(1);
  EXPECT_EQ(Of(app_).late_share_known, 1) << "a target is known";
  EXPECT_EQ(Of(app_).p99_over_alone_known, 0);
  EXPECT_TRUE(has_sample("gpushare_app_recent_late_ratio"));
}

TEST_F(GuaranteeTest, AnUpdateBeginsTheWindowAnewWhereThePromiseChanges) {
  Open(1.5, 1.1, 100 * kUs);
  RunQueries(50);
  EXPECT_EQ(Of(app_).late_share, 1);
  gpushare_app_update_options update = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  update.fields = GPUSHARE_APP_FIELD_P99_ALONE_NS;
  update.p99_alone_ns = 5 * kMs;
  ASSERT_OK(gpushare_app_update(app_, &update));
  EXPECT_EQ(Of(app_).queries, 0);
  EXPECT_EQ(Of(app_).p99_alone_ns, 5 * kMs);
  EXPECT_EQ(Of(app_).p99_bound, 1.5) << "what it does not name stays";
  EXPECT_EQ(Of(app_).p50_bound, 1.1);
  RunQueries(10);
  EXPECT_EQ(Of(app_).late_share, 0);
  ASSERT_OK(gpushare_app_update(app_, &update));
  EXPECT_EQ(Of(app_).queries, 10) << "the same again changes nothing";
}

// Nothing runs beside the queries, so what they got is what they get alone.
TEST_F(GuaranteeTest, EstimatesTheP99AloneWithItsError) {
  Open(1.5, 0, 0);
  EXPECT_EQ(Of(app_).p99_alone_estimate_ns, 0);
  const int64_t latency_ns = RunQueries(400);
  const gpushare_app_guarantee guarantee = Of(app_);
  EXPECT_NEAR(static_cast<double>(guarantee.p99_alone_estimate_ns), static_cast<double>(latency_ns),
              0.1 * static_cast<double>(latency_ns));
  EXPECT_GE(guarantee.p99_alone_error, 0);
  EXPECT_LT(guarantee.p99_alone_error, 0.1);
  EXPECT_EQ(guarantee.bound_lost, 0);
}

TEST_F(GuaranteeTest, SaysThatABoundIsMissedEvenAlone) {
  Open(1.5, 0, 100 * kUs);
  RunQueries(50);
  EXPECT_EQ(Of(app_).bound_lost, 1);
  gpushare_app_update_options update = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  update.fields = GPUSHARE_APP_FIELD_P99_ALONE_NS;
  update.p99_alone_ns = 2 * kMs;
  ASSERT_OK(gpushare_app_update(app_, &update));
  EXPECT_EQ(Of(app_).bound_lost, 0);
}

TEST_F(GuaranteeTest, SaysThatATargetIsMissedEvenAlone) {
  Open(0, 0, 0, 100 * kUs);
  RunQueries(50);
  EXPECT_EQ(Of(app_).target_lost, 1);
  EXPECT_EQ(Of(app_).bound_lost, 0);
  EXPECT_NE(Metrics().find("gpushare_app_target_lost{"), std::string::npos);
  gpushare_app_update_options update = GPUSHARE_APP_UPDATE_OPTIONS_INIT;
  update.fields = GPUSHARE_APP_FIELD_TARGET_NS;
  update.target_ns = 100 * kMs;
  ASSERT_OK(gpushare_app_update(app_, &update));
  EXPECT_EQ(Of(app_).target_lost, 0);
}

TEST_F(GuaranteeTest, CountsQueriesBeyondTheBound) {
  Open(1, 0, 100 * kUs);
  RunQueries(50);
  EXPECT_EQ(Of(app_).late_share, 1);
}

TEST_F(GuaranteeTest, SaysForHowLongBeWasHeldAndWhy) {
  Open(1.02, 0, kMs);
  RunQueries(1);
  gpushare_query query = {0};
  ASSERT_OK(gpushare_query_begin(queue_, 0, &query));
  ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + kMs));
  gpushare_task_options opaque = GPUSHARE_TASK_OPTIONS_INIT;
  opaque.kind = GPUSHARE_TASK_OPAQUE;
  opaque.enqueue = [](void*, void*) {};
  opaque.declared_ns = 20 * kMs;  // too long for any share of the idle periods
  const gpushare_ticket ticket = api_.Submit(opaque, false);
  ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 5 * kMs));
  const gpushare_app_guarantee held = Of(api_.be_app);
  int64_t all_ns = 0;
  for (const int64_t ns : held.held_ns) all_ns += ns;
  EXPECT_NEAR(static_cast<double>(all_ns), 5e6, 0.2e6);
  EXPECT_GT(held.held_ns[GPUSHARE_REASON_HOLD_TAIL_CREDIT - GPUSHARE_REASON_HOLD_HEADROOM],
            4 * kMs);
  size_t size = 0;
  gpushare_metrics_text(api_.runtime, nullptr, 0, &size);
  std::string text(size, '\0');
  ASSERT_OK(gpushare_metrics_text(api_.runtime, text.data(), text.size(), &size));
  EXPECT_NE(text.find("gpushare_app_held_seconds_total{"), std::string::npos);
  EXPECT_NE(text.find("reason=\"hold_tail_credit\""), std::string::npos);
  EXPECT_NE(text.find("gpushare_app_p99_bound{"), std::string::npos);
  ASSERT_OK(gpushare_query_end(api_.runtime, query));
  ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 30'000 * kMs));
  EXPECT_EQ(api_.Finish(ticket).verdict, GPUSHARE_VERDICT_OK) << "quiet time earns the credit";
  const gpushare_app_guarantee after = Of(api_.be_app);
  ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 5 * kMs));
  EXPECT_EQ(
      Of(api_.be_app).held_ns[GPUSHARE_REASON_HOLD_TAIL_CREDIT - GPUSHARE_REASON_HOLD_HEADROOM],
      after.held_ns[GPUSHARE_REASON_HOLD_TAIL_CREDIT - GPUSHARE_REASON_HOLD_HEADROOM])
      << "nothing is held any more";
}

TEST_F(GuaranteeTest, RefusesAMedianBoundThatIsNone) {
  Open(0, 0, 0);
  gpushare_app* app = nullptr;
  gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "odd");
  options.p50_bound = 0.9;
  EXPECT_EQ(gpushare_app_create(api_.runtime, &options, &app), GPUSHARE_INVALID_ARGUMENT);
  options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "be with a bound");
  options.p50_bound = 1.1;
  EXPECT_EQ(gpushare_app_create(api_.runtime, &options, &app), GPUSHARE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gpushare_test
