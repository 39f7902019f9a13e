// An LC app's load and lag in the snapshot: the share of time that its queries would take alone,
// wherever they run, and how far it is behind the queue that it would have alone. Simulated device,
// virtual time; the test's policy places the queries.

#include "src/core/evidence/lc_load.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/evidence/tuning.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/forwarding_model.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// A query alone on the whole device, and on half of it.
constexpr int64_t kSoloNs = kMs;
constexpr double kHalfSpeed = 0.5;
constexpr int32_t kHalfSms = 64;
constexpr int64_t kPeriodNs = 4 * kMs;
constexpr int kPeriods = 250;  // two windows of the load

// The smoothed load of a regular app swings around its mean by less than a period's part of the
// window (0.8 %) times share x (1 - share), 0.002; a launch and a completion add less than 20 us to
// a busy period of each 4 ms, 0.005. The loads to be distinguished, 0.125, 0.25 and 0.5, differ by
// far more.
constexpr double kTolerance = 0.01;
static_assert(kPeriodNs / kLoadWindowNs < kTolerance, "one period must weigh little in the window");

struct Orders {
  bool half = false;  // queries go to the half of the device
  double load = -1;   // of the one app, as the last snapshot showed it
  int64_t lag_ns_max = 0;
  int64_t shadow_p99_ns = 0;
};

// Launches every head on the place that is asked for, and looks again every 100 us.
class PlacingPolicy final : public Policy {
 public:
  explicit PlacingPolicy(Orders& orders) : orders_(orders) {}
  absl::string_view name() const override { return "placing"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    if (!snapshot.lc_apps.empty()) {
      orders_.load = snapshot.lc_apps[0].load;
      orders_.lag_ns_max = std::max(orders_.lag_ns_max, snapshot.lc_apps[0].lag_ns);
      orders_.shadow_p99_ns = snapshot.lc_apps[0].shadow_p99_ns;
    }
    for (LcRoute& route : plan.routes) route.fast_path = false;
    PlannedLaunch launch;
    launch.form = Form::kGraph;
    launch.lane_class = LaneClass::kLc;
    for (const SplitView& split : snapshot.splits) {
      if (orders_.half && split.lc_sms == kHalfSms) launch.place = split.lc_place;
    }
    for (const HeadView& head : snapshot.heads) {
      launch.task = head.task;
      plan.launches.TryAdd(launch);
    }
    plan.replan_at_ns = snapshot.now_ns + 100 * kUs;
  }

 private:
  Orders& orders_;
};

// The online model, or one that takes every query to last as long as the test says.
class SayingModel final : public ForwardingModel {
 public:
  static constexpr int64_t kAsLearned = -1;

  SayingModel(std::unique_ptr<CostModel> model, const int64_t& solo_ns)
      : ForwardingModel(std::move(model)), solo_ns_(solo_ns) {}
  Prediction PredictSolo(const TaskFeatures& features) const override {
    if (solo_ns_ == kAsLearned) return ForwardingModel::PredictSolo(features);
    return {solo_ns_, 0, false};
  }

 private:
  const int64_t& solo_ns_;
};

class LoadTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<SayingModel>(std::move(model), predicted_solo_ns_);
  }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PlacingPolicy>(orders_)));
    KernelDesc query = Graph("query", kSoloNs);
    query.simulation.speed = {{kHalfSms, kHalfSpeed}, {sms_, 1}};
    query_ = *scheduler_->RegisterKernel(query);
    queue_ = AddQueue(AppClass::kLatencyCritical, "service");
  }

  TicketId Submit(TimeNs arrival_ns = 0) {
    TaskSpec spec;
    spec.arrival_ns = arrival_ns;
    spec.queue = queue_;
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = query_;
    const auto ticket = scheduler_->SubmitLc(spec);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.value_or(TicketId());
  }

  // So many queries at once in every period; returns the share of time that any was there.
  double Serve(int queries_at_once = 1) {
    int64_t busy_ns = 0;
    for (int period = 0; period < kPeriods; ++period) {
      const TimeNs begin_ns = scheduler_->NowNs();
      std::vector<TicketId> tickets(static_cast<size_t>(queries_at_once));
      for (TicketId& ticket : tickets) ticket = Submit();
      EXPECT_TRUE(scheduler_->PollUntil(begin_ns + kPeriodNs * queries_at_once).ok());
      const auto last = scheduler_->Record(tickets.back());
      EXPECT_TRUE(last.ok()) << last.status();
      EXPECT_EQ(last->verdict, Verdict::kOk) << "the query was done within its period";
      busy_ns += last->complete_ns - last->submit_ns;
      for (const TicketId ticket : tickets) EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    }
    return static_cast<double>(busy_ns) /
           static_cast<double>(kPeriodNs * queries_at_once * kPeriods);
  }

  Orders orders_;
  int64_t predicted_solo_ns_ = SayingModel::kAsLearned;
  KernelId query_;
  QueueId queue_;
};

TEST_F(LoadTest, AnAppIsNotLoadedWhenItIsNew) {
  scheduler_->Tick();
  EXPECT_EQ(orders_.load, 0);
}

TEST_F(LoadTest, AnAppThatNothingSlowsIsLoadedWhileItIsBusy) {
  const double busy = Serve();
  EXPECT_NEAR(busy, 0.25, kTolerance);
  EXPECT_NEAR(orders_.load, busy, kTolerance);
}

TEST_F(LoadTest, OnASmallPlaceAnAppIsNoMoreLoadedThanAlone) {
  orders_.half = true;
  const double busy = Serve();
  EXPECT_NEAR(busy, 0.5, kTolerance) << "the place makes queries twice as long";
  EXPECT_NEAR(orders_.load, 0.25, kTolerance) << "lambda x solo";
}

// Else the layout that LC was moved to would be left again for the load that it made itself.
TEST_F(LoadTest, AMoveToAnotherPlaceDoesNotMoveTheLoad) {
  for (const bool half : {false, true, false}) {
    orders_.half = half;
    EXPECT_NEAR(Serve(), half ? 0.5 : 0.25, kTolerance);
    EXPECT_NEAR(orders_.load, 0.25, kTolerance) << "half the device: " << half;
  }
}

// A busy period of two queries counts as both of them: 2 x 1 ms in 8 ms.
TEST_F(LoadTest, EveryQueryOfABusyPeriodCounts) {
  for (const bool half : {false, true}) {
    orders_.half = half;
    EXPECT_NEAR(Serve(2), half ? 0.5 : 0.25, kTolerance);
    EXPECT_NEAR(orders_.load, 0.25, kTolerance) << "half the device: " << half;
  }
}

// 250 queries in a row on half the device: half of a window that is all busy.
TEST_F(LoadTest, ABusyPeriodAsLongAsTheWindowCountsTheSame) {
  orders_.half = true;
  TicketId last;
  for (int64_t i = 0; i < static_cast<int64_t>(kLoadWindowNs) / (2 * kSoloNs); ++i) last = Submit();
  ASSERT_TRUE(scheduler_->Wait(last, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_GE(static_cast<double>(scheduler_->NowNs()), kLoadWindowNs);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 200 * kUs).ok());
  EXPECT_NEAR(orders_.load, 0.5, kTolerance);
}

TEST_F(LoadTest, AQueryOfUnknownDurationCountsAsWhatItTook) {
  predicted_solo_ns_ = 0;
  orders_.half = true;
  const double busy = Serve();
  EXPECT_NEAR(busy, 0.5, kTolerance);
  EXPECT_NEAR(orders_.load, busy, kTolerance);
}

// Queries whose intended arrival is long after their end have a negative latency. It must not
// reduce the time of the others of their busy period.
TEST_F(LoadTest, AQueryThatEndsBeforeItsArrivalTakesNoTimeAway) {
  predicted_solo_ns_ = 0;
  for (int period = 0; period < kPeriods; ++period) {
    const TimeNs begin_ns = scheduler_->NowNs();
    const TicketId early = Submit(begin_ns + 1000 * kMs);
    const TicketId late = Submit();
    ASSERT_TRUE(scheduler_->PollUntil(begin_ns + 2 * kPeriodNs).ok());
    for (const TicketId ticket : {early, late}) ASSERT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }
  // 2 ms busy in each 8 ms, all of it the latency of the second query.
  EXPECT_NEAR(orders_.load, 0.25, kTolerance);
}

// Half the device makes a query 1 ms longer than alone. Its time alone stays what it is.
TEST_F(LoadTest, OnASmallPlaceAnAppFallsBehindItsShadow) {
  constexpr int64_t kLaunchNs = 50 * kUs;  // and completion, of two queries
  Serve(2);
  EXPECT_LE(orders_.lag_ns_max, kLaunchNs) << "the second query waits as it would alone";
  EXPECT_NEAR(static_cast<double>(orders_.shadow_p99_ns), 2.0 * kMs, kLaunchNs);
  orders_.half = true;
  Serve(2);
  EXPECT_GT(orders_.lag_ns_max, 3 * kSoloNs / 2);
  EXPECT_LE(orders_.lag_ns_max, 2 * kSoloNs + kLaunchNs);
  EXPECT_NEAR(static_cast<double>(orders_.shadow_p99_ns), 2.0 * kMs, kLaunchNs);
}

// A query that ends when it begins has a busy period of no time: it changes nothing.
TEST_F(LoadTest, AnEmptyQueryLeavesTheLoadAsItIs) {
  Serve();
  for (int i = 0; i < 10; ++i) {
    const auto query = scheduler_->BeginQuery(queue_, scheduler_->NowNs() + 1000 * kMs).value();
    ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  }
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 200 * kUs).ok());
  EXPECT_NEAR(orders_.load, 0.25, kTolerance);
}

// The hint is half of what the kernel takes: the app counts with the hint until it is learned.
TEST_F(LoadTest, TwiceTheSoloHintCountsAsTheHint) {
  predicted_solo_ns_ = kSoloNs / 2;
  EXPECT_NEAR(Serve(), 0.25, kTolerance);
  EXPECT_NEAR(orders_.load, 0.125, kTolerance);
}

// A prediction that is too long adds no time in which nothing was there.
TEST_F(LoadTest, APredictionThatIsTooLongAddsNothing) {
  predicted_solo_ns_ = 3 * kSoloNs;
  const double busy = Serve();
  EXPECT_NEAR(busy, 0.25, kTolerance);
  EXPECT_NEAR(orders_.load, busy, kTolerance);
}

}  // namespace
}  // namespace gpushare::core
