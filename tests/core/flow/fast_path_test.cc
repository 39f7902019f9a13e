// The LC fast path on the simulated device: what an LC submit has done by the time it returns,
// before any Tick.

#include "src/core/flow/entry/fast_path.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/policies/registry.h"
#include "src/core/state/shared/route.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class FastPathTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    sim::SimOptions options;
    options.faults = Faults();
    SchedulerOptions scheduler_options;
    scheduler_options.events = &log_;
    ASSERT_NO_FATAL_FAILURE(
        StartScheduler(*MakePolicy("adaptive:evict"), scheduler_options, options));
    be_kernel_ = *scheduler_->RegisterKernel(EvictableKernel("be", 50 * kUs));
    lc_kernel_ = *scheduler_->RegisterKernel(Graph("query", 100 * kUs));
    lc_ = AddQueue(AppClass::kLatencyCritical, "server");
    be_ = AddQueue(AppClass::kBestEffort, "train");
    // The first task of a queue goes through the flow, which publishes the routes.
    ASSERT_TRUE(scheduler_->Wait(SubmitLc(), kNever).ok());
  }

  virtual sim::FaultPlan Faults() const { return {}; }

  TicketId SubmitLc() {
    TaskSpec spec;
    spec.queue = lc_;
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = lc_kernel_;
    return *scheduler_->SubmitLc(spec);
  }
  TicketId SubmitBe() {
    TaskSpec spec;
    spec.queue = be_;
    spec.kernel = be_kernel_;
    spec.work.block_tasks = 200'000;
    return *scheduler_->SubmitBe(spec);
  }
  int Count(EventType type, AppClass app_class) const {
    int count = 0;
    for (const EventRecord& record : log_.records()) {
      const bool classless = type == EventType::kEvicted;
      count += record.type == static_cast<uint8_t>(type) &&
               (classless || record.app_class == static_cast<uint8_t>(app_class));
    }
    return count;
  }

  EventLog log_{1 << 16};
  KernelId be_kernel_, lc_kernel_;
  QueueId lc_, be_;
};

TEST_F(FastPathTest, AnLcSubmitHasEvictedAndLaunchedWhenItReturns) {
  const TicketId be = SubmitBe();
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  ASSERT_EQ(Count(EventType::kLaunched, AppClass::kBestEffort), 1);
  const int evictions = Count(EventType::kEvicted, AppClass::kBestEffort);
  const int64_t launches = scheduler_->Stats().fast_path_launches;
  const TicketId lc = SubmitLc();
  EXPECT_EQ(Count(EventType::kEvicted, AppClass::kBestEffort), evictions + 1);
  EXPECT_EQ(scheduler_->Stats().fast_path_launches, launches + 1);
  ASSERT_TRUE(scheduler_->Wait(lc, kNever).ok());
  // One block task and the query: it did not wait for the BE task, which has most of its work left.
  const CompletionRecord record = *scheduler_->Record(lc);
  EXPECT_LT(record.complete_ns - record.submit_ns, 250 * kUs);
  EXPECT_EQ(record.launch_reason, Reason::kFastPath);
  EXPECT_FALSE(*scheduler_->IsComplete(be));
  ASSERT_TRUE(scheduler_->Wait(be, kNever).ok());
  EXPECT_EQ(scheduler_->Record(be)->evictions, 1);
  EXPECT_EQ(scheduler_->Record(be)->block_tasks, 200'000);
}

TEST_F(FastPathTest, NoBeLaunchPassesTheGateWhileLcWorkIsInFlight) {
  const TicketId lc = SubmitLc();
  SubmitBe();
  while (!*scheduler_->IsComplete(lc)) {
    EXPECT_EQ(Count(EventType::kLaunched, AppClass::kBestEffort), 0);
    ASSERT_TRUE(scheduler_->Poll().ok());
  }
  ASSERT_TRUE(scheduler_->Drain(kNever).ok());
  EXPECT_EQ(Count(EventType::kLaunched, AppClass::kBestEffort), 1);
}

// The route of each plan is the test's.
class LeavesPlaceTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    auto policy = std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
      const PlaceIndex side = snapshot.splits.front().lc_place;
      for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
        plan.routes[a].place = on_side_ ? side : kWholeDevice;
        plan.routes[a].fast_path = fast_;
      }
      plan.replan_at_ns = snapshot.now_ns + kUs;
      for (const HeadView& head : snapshot.heads) {
        PlannedLaunch launch;
        launch.task = head.task;
        launch.form = Form::kGraph;
        launch.place = plan.routes[0].place;
        launch.lane_class = LaneClass::kLc;
        launch.count = head.ready_count;
        plan.launches.TryAdd(launch);
      }
    });
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy)));
    graph_ = *scheduler_->RegisterKernel(Graph("query", 100 * kUs));
    queue_ = AddQueue(AppClass::kLatencyCritical, "server");
  }

  // A plan with this route, and a query behind it.
  TicketId SubmitOn(bool side) {
    on_side_ = side;
    EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 2 * kUs).ok());
    const TicketId ticket = SubmitGraph(queue_, graph_, true);
    EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 2 * kUs).ok());
    return ticket;
  }
  CompletionRecord RecordOf(TicketId ticket) { return *scheduler_->Record(ticket); }

  bool on_side_ = true;
  bool fast_ = true;
  KernelId graph_;
  QueueId queue_;
};

TEST_F(LeavesPlaceTest, ABurstGoesOnInALargerPlaceBehindItsEarlierQueries) {
  for (const bool fast : {false, true}) {
    SCOPED_TRACE(fast ? "by the submitter" : "by the flow");
    fast_ = fast;
    std::vector<TicketId> queries;
    for (const bool side : {true, true, false, false}) queries.push_back(SubmitOn(side));
    ASSERT_TRUE(scheduler_->Drain(kNever).ok());
    EXPECT_NE(RecordOf(queries[1]).place, kWholeDevice);
    EXPECT_EQ(RecordOf(queries[2]).place, kWholeDevice);
    EXPECT_LT(RecordOf(queries[2]).launch_ns, RecordOf(queries[0]).complete_ns)
        << "it was launched while the others were in flight";
    for (size_t i = 1; i < queries.size(); ++i) {
      EXPECT_GE(RecordOf(queries[i]).start_ns, RecordOf(queries[i - 1]).end_ns) << i;
    }
    EXPECT_EQ(RecordOf(queries[3]).launch_reason == Reason::kFastPath, fast);
  }
}

TEST_F(LeavesPlaceTest, AQueueOnTheWholeDeviceStaysThereUntilItIsEmpty) {
  const TicketId first = SubmitOn(false);
  const TicketId second = SubmitOn(true);
  ASSERT_TRUE(scheduler_->Drain(kNever).ok());
  const TicketId third = SubmitOn(true);
  ASSERT_TRUE(scheduler_->Drain(kNever).ok());
  EXPECT_EQ(RecordOf(first).place, kWholeDevice);
  EXPECT_EQ(RecordOf(second).place, kWholeDevice);
  EXPECT_NE(RecordOf(third).place, kWholeDevice);
}

class BlockedEvictionTest : public FastPathTest {
 protected:
  sim::FaultPlan Faults() const override {
    sim::FaultPlan faults;
    faults.blocked_eviction.nth = 1;
    return faults;
  }
};

TEST_F(BlockedEvictionTest, IsCountedOnceWhileItsLaunchStillRuns) {
  const TicketId be = SubmitBe();
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  SubmitLc();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  }
  EXPECT_FALSE(*scheduler_->IsComplete(be)) << "the launch ended before the eviction was counted";
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, 1);
  ASSERT_TRUE(scheduler_->Drain(kNever).ok());
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, 1);
}

TEST(RouteWord, KeepsEveryField) {
  for (PlaceIndex place : {-1, 0, 31}) {
    for (int flags = 0; flags < 8; ++flags) {
      LcRoute route;
      route.place = place;
      route.lane_class = flags % 3 == 0 ? LaneClass::kLc : LaneClass::kPlain;
      route.fast_path = (flags & 1) != 0;
      route.evict_overlapping = (flags & 2) != 0;
      route.waits_for_empty_sms = (flags & 4) != 0;
      const LcRoute back = UnpackRoute(PackRoute(route));
      EXPECT_EQ(back.place, route.place);
      EXPECT_EQ(back.lane_class, route.lane_class);
      EXPECT_EQ(back.fast_path, route.fast_path);
      EXPECT_EQ(back.evict_overlapping, route.evict_overlapping);
      EXPECT_EQ(back.waits_for_empty_sms, route.waits_for_empty_sms);
    }
  }
}

}  // namespace
}  // namespace gpushare::core
