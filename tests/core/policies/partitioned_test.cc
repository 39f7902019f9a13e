// partitioned on hand-built snapshots: where jobs run and in which order, which overrun leaves, and
// where BE work is.

#include "src/core/policies/papers/partitioned.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/policies/snapshot_builder.h"

namespace gpushare::core {
namespace {

using testing::FindEviction;
using testing::FindHold;
using testing::FindLaunch;
using testing::IsHeld;
using testing::IsLaunched;
using testing::kMs;
using testing::kUs;
using testing::SnapshotBuilder;

class PartitionedTest : public ::testing::Test {
 protected:
  PartitionedTest() : builder_(std::vector<int32_t>()) {
    view_.rest = AddPlace(100);
    builder_.snapshot.partitions = &view_;
    evictable_ = builder_.AddKernel(20 * kUs);
    resident_ = builder_.AddKernel(kNever);
  }

  // A place that shares SMs with the whole device alone.
  PlaceIndex AddPlace(int32_t sms) {
    const auto place = static_cast<PlaceIndex>(builder_.places.size());
    builder_.places.push_back({.sms = sms, .overlaps = 1 | uint64_t{1} << place});
    builder_.places[0].overlaps |= uint64_t{1} << place;
    return place;
  }
  int32_t AddPartition(bool shared) {
    view_.partitions.Add({.place = AddPlace(16), .shared = shared});
    return view_.partitions.size() - 1;
  }
  PlaceIndex PlaceOf(int32_t partition) const { return view_.partitions[partition].place; }
  int32_t AddApp(int32_t partition, int64_t deadline_ns) {
    const int32_t app = builder_.AddLcApp(0.1, 100 * kUs, 0, 0);
    AppOf(app).partition = partition;
    AppOf(app).deadline_ns = deadline_ns;
    return app;
  }
  RealTimeView& AppOf(int32_t app) { return view_.apps[static_cast<size_t>(app)]; }
  // A job that arrived `age_ns` ago, ready to be launched.
  HeadView& AddJob(int32_t app, int64_t age_ns = 0) {
    const int32_t query = builder_.AddQuery(app, kNever);
    builder_.queries[static_cast<size_t>(query)].arrival_ns = builder_.snapshot.now_ns - age_ns;
    return builder_.AddLcKernelHead(query, evictable_, 100 * kUs);
  }
  // The app's job is on the device.
  void Run(int32_t app, int64_t budget_left_ns, bool has_word = false) {
    LcAppView& lc = builder_.lc_apps[static_cast<size_t>(app)];
    ++lc.tasks_in_flight;
    ++lc.active_queries;
    AppOf(app).running = TicketId{900 + static_cast<uint64_t>(app)};
    AppOf(app).has_word = has_word;
    AppOf(app).budget_end_ns = builder_.snapshot.now_ns + budget_left_ns;
  }
  const Plan& MakePlan() {
    plan_.Clear();
    PartitionedPolicy().MakePlan(builder_.Get(), plan_);
    return plan_;
  }

  SnapshotBuilder builder_;
  PartitionsView view_;
  int32_t evictable_ = 0;
  int32_t resident_ = 0;
  Plan plan_;
};

TEST_F(PartitionedTest, JobsRunInTheirPartitionsSideBySide) {
  const int32_t one = AddApp(AddPartition(false), 10 * kMs);
  const int32_t other = AddApp(AddPartition(false), 20 * kMs);
  const HeadView& first = AddJob(one);
  const HeadView& second = AddJob(other);
  const Plan& plan = MakePlan();
  EXPECT_TRUE(IsLaunched(plan, first, {.place = PlaceOf(0), .lane_class = LaneClass::kLc}));
  EXPECT_TRUE(IsLaunched(plan, second, {.place = PlaceOf(1), .lane_class = LaneClass::kLc}));
  EXPECT_EQ(plan.routes[0].place, PlaceOf(0));
  EXPECT_EQ(plan.routes[1].place, PlaceOf(1));
  EXPECT_TRUE(plan.routes[0].fast_path);
  EXPECT_EQ(plan.places_wanted & (uint64_t{1} << PlaceOf(1)), uint64_t{1} << PlaceOf(1));
}

TEST_F(PartitionedTest, SharedPartitionServesTheEarliestDeadline) {
  const int32_t partition = AddPartition(true);
  const int32_t slow = AddApp(partition, 20 * kMs);
  const int32_t quick = AddApp(partition, 5 * kMs);
  const HeadView& later = AddJob(quick);          // due in 5 ms
  const HeadView& late = AddJob(slow, 16 * kMs);  // due in 4 ms
  const Plan& plan = MakePlan();
  EXPECT_TRUE(IsLaunched(plan, late, {.place = PlaceOf(partition), .count = 1}));
  EXPECT_TRUE(IsHeld(plan, later, Reason::kHoldLcActive));
  EXPECT_FALSE(plan.routes[0].fast_path) << "a submitter knows no deadline but its own";
}

TEST_F(PartitionedTest, SharedPartitionHasOneJobAtATime) {
  const int32_t partition = AddPartition(true);
  const int32_t running = AddApp(partition, 20 * kMs);
  const HeadView& waits = AddJob(AddApp(partition, 5 * kMs));
  Run(running, 3 * kMs, /*has_word=*/true);
  const Plan& plan = MakePlan();
  EXPECT_TRUE(IsHeld(plan, waits, Reason::kHoldLcActive));
  EXPECT_TRUE(plan.evictions.empty()) << "a job runs to its end within its worst case";
  EXPECT_EQ(plan.replan_at_ns, builder_.snapshot.now_ns + 3 * kMs);
}

TEST_F(PartitionedTest, OverrunLeavesForAJobThatWaits) {
  const int32_t partition = AddPartition(true);
  const int32_t guilty = AddApp(partition, 20 * kMs);
  const int32_t other = AddApp(partition, 5 * kMs);
  Run(guilty, 0, /*has_word=*/true);
  EXPECT_TRUE(MakePlan().evictions.empty()) << "nobody waits";
  AddJob(other);
  const Plan& plan = MakePlan();
  ASSERT_EQ(plan.evictions.size(), 1);
  EXPECT_EQ(plan.evictions[0].task, AppOf(guilty).running);
  EXPECT_EQ(plan.evictions[0].place, PlaceOf(partition));
}

TEST_F(PartitionedTest, OverrunOfAnAppGoesBehindAllOthers) {
  const int32_t partition = AddPartition(true);
  const int32_t guilty = AddApp(partition, 5 * kMs);
  const int32_t other = AddApp(partition, 20 * kMs);
  AppOf(guilty).overran = true;
  const HeadView& rest = AddJob(guilty, 4 * kMs);
  const HeadView& next = AddJob(other);
  EXPECT_TRUE(IsLaunched(MakePlan(), next, {.place = PlaceOf(partition)}));
  EXPECT_TRUE(IsHeld(plan_, rest, Reason::kHoldLcActive));
}

TEST_F(PartitionedTest, EvictableJobsOfASharedPartitionAreWorkers) {
  const int32_t partition = AddPartition(true);
  const int32_t app = AddApp(partition, 5 * kMs);
  AppOf(app).evictable = true;
  const HeadView& job = AddJob(app);
  EXPECT_TRUE(IsLaunched(MakePlan(), job, {.form = Form::kWorkers, .lane_class = LaneClass::kBe}));
  view_.partitions[partition].shared = false;
  EXPECT_TRUE(IsLaunched(MakePlan(), job, {.form = Form::kOriginal, .lane_class = LaneClass::kLc}));
}

TEST_F(PartitionedTest, BeWorkRunsOnTheRestWhateverItIs) {
  const int32_t app = AddApp(AddPartition(false), 10 * kMs);
  AddJob(app);
  const int32_t be = builder_.AddBeApp();
  const HeadView& grid = builder_.AddBeHead(be, resident_, 50 * kMs);
  const HeadView& workers = builder_.AddBeHead(be, evictable_, 50 * kMs);
  const HeadView& third = builder_.AddBeHead(be, evictable_, 50 * kMs);
  const Plan& plan = MakePlan();
  EXPECT_TRUE(IsLaunched(plan, grid, {.place = view_.rest}));
  EXPECT_TRUE(IsLaunched(plan, workers, {.form = Form::kWorkers, .place = view_.rest}));
  EXPECT_TRUE(IsHeld(plan, third, Reason::kHoldWindow));
}

TEST_F(PartitionedTest, WorkThatNoPlaceHoldsWaits) {
  AddApp(AddPartition(false), 10 * kMs);
  HeadView& opaque = builder_.AddBeTask(builder_.AddBeApp(), TaskKind::kOpaque, kMs);
  opaque.confinable = false;
  EXPECT_TRUE(IsHeld(MakePlan(), opaque, Reason::kHoldLane));
}

TEST_F(PartitionedTest, SlackTakesOnlyWhatLeavesInTime) {
  AddApp(AddPartition(false), 10 * kMs);
  view_.rest = kNoPlace;
  const int32_t be = builder_.AddBeApp();
  const HeadView& grid = builder_.AddBeHead(be, resident_, 50 * kMs);
  const HeadView& workers = builder_.AddBeHead(be, evictable_, 50 * kMs);
  EXPECT_EQ(FindLaunch(MakePlan(), workers), nullptr) << "the plan charged no eviction";
  view_.slack_eviction_ns = 19 * kUs;
  EXPECT_EQ(FindLaunch(MakePlan(), workers), nullptr) << "its eviction takes 20 us";
  view_.slack_eviction_ns = 20 * kUs;
  EXPECT_TRUE(IsLaunched(MakePlan(), workers, {.form = Form::kWorkers, .place = PlaceOf(0)}));
  EXPECT_EQ(FindLaunch(plan_, grid), nullptr) << "nothing evicts it";
  EXPECT_FALSE(plan_.routes[0].fast_path) << "a submitter would evict nothing";
}

TEST_F(PartitionedTest, BeWorkLeavesThePartitionOfAJob) {
  const int32_t busy = AddApp(AddPartition(false), 10 * kMs);
  AddApp(AddPartition(false), 10 * kMs);
  view_.slack_eviction_ns = 50 * kUs;
  const RunningView& be = builder_.AddRunningBe(builder_.AddBeApp(), evictable_, 50 * kMs,
                                                {{view_.rest}, {PlaceOf(0)}, {PlaceOf(1)}});
  const HeadView task = be.task;
  const HeadView& job = AddJob(busy);
  const Plan& plan = MakePlan();
  EXPECT_NE(FindEviction(plan, task, PlaceOf(0)), nullptr);
  EXPECT_EQ(FindEviction(plan, task, PlaceOf(1)), nullptr) << "that partition is idle";
  EXPECT_EQ(FindEviction(plan, task, view_.rest), nullptr);
  EXPECT_TRUE(IsLaunched(plan, job, {.place = PlaceOf(0)})) << "behind what leaves";
}

TEST_F(PartitionedTest, RunningWorkersSpreadOverIdlePartitions) {
  AddApp(AddPartition(false), 10 * kMs);
  view_.slack_eviction_ns = 50 * kUs;
  const HeadView task =
      builder_.AddRunningBe(builder_.AddBeApp(), evictable_, 50 * kMs, {{view_.rest}}).task;
  EXPECT_TRUE(IsLaunched(MakePlan(), task, {.form = Form::kWorkers, .place = PlaceOf(0)}));
}

TEST_F(PartitionedTest, WorkFromBeforeThePlanLeavesTheWholeDevice) {
  AddApp(AddPartition(false), 10 * kMs);
  const HeadView task =
      builder_.AddRunningBe(builder_.AddBeApp(), evictable_, 50 * kMs, {{kWholeDevice}}).task;
  EXPECT_NE(FindEviction(MakePlan(), task, kWholeDevice), nullptr);
}

TEST_F(PartitionedTest, AppWithoutAPartitionIsFirstOnTheRest) {
  AddApp(AddPartition(false), 10 * kMs);
  const int32_t service = AddApp(RealTimeView::kNoPartition, 0);
  const HeadView& query = AddJob(service);
  const HeadView task =
      builder_.AddRunningBe(builder_.AddBeApp(), evictable_, 50 * kMs, {{view_.rest}}).task;
  const HeadView& head = builder_.AddBeHead(0, evictable_, 50 * kMs);
  const Plan& plan = MakePlan();
  EXPECT_TRUE(IsLaunched(plan, query, {.place = view_.rest}));
  EXPECT_NE(FindEviction(plan, task, view_.rest), nullptr);
  EXPECT_NE(FindHold(plan, head), nullptr);
}

TEST_F(PartitionedTest, UnconfinableWorkOfAnAppWithoutAPartitionWaits) {
  AddApp(AddPartition(false), 10 * kMs);
  HeadView& query = AddJob(AddApp(RealTimeView::kNoPartition, 0));
  query.confinable = false;
  const HeadView& be = builder_.AddBeHead(builder_.AddBeApp(), evictable_, 50 * kMs);
  EXPECT_TRUE(IsHeld(MakePlan(), query, Reason::kHoldLane)) << "it would be on the partition too";
  EXPECT_TRUE(IsLaunched(plan_, be, {.place = view_.rest})) << "nothing of LC runs there";
  view_.rest = kNoPlace;
  EXPECT_TRUE(IsHeld(MakePlan(), query, Reason::kHoldLane));
}

TEST_F(PartitionedTest, AnIdlePartitionHasOneBeLaunch) {
  AddApp(AddPartition(false), 10 * kMs);
  view_.rest = kNoPlace;
  view_.slack_eviction_ns = 50 * kUs;
  const int32_t be = builder_.AddBeApp();
  const HeadView& first = builder_.AddBeHead(be, evictable_, 50 * kMs);
  const HeadView& second = builder_.AddBeHead(be, evictable_, 50 * kMs);
  EXPECT_TRUE(IsLaunched(MakePlan(), first, {.place = PlaceOf(0)}));
  EXPECT_TRUE(IsHeld(plan_, second, Reason::kHoldWindow));
}

TEST_F(PartitionedTest, AwaitedWorkThatNoPlaceHoldsRunsWhileNoJobDoes) {
  const int32_t app = AddApp(AddPartition(false), 10 * kMs);
  HeadView& opaque = builder_.AddBeTask(builder_.AddBeApp(), TaskKind::kOpaque, kMs);
  opaque.confinable = false;
  opaque.awaited_by_lc = true;
  EXPECT_TRUE(IsLaunched(MakePlan(), opaque, {.place = kWholeDevice}));
  AddJob(app);
  EXPECT_TRUE(IsHeld(MakePlan(), opaque, Reason::kHoldLane));
}

TEST_F(PartitionedTest, AwaitedWorkRunsOnTheRestOfTheQueryThatWaits) {
  AddApp(AddPartition(false), 10 * kMs);
  const int32_t service = AddApp(RealTimeView::kNoPartition, 0);
  builder_.lc_apps[static_cast<size_t>(service)].active_queries = 1;
  const int32_t be = builder_.AddBeApp();
  HeadView& head = builder_.AddBeHead(be, evictable_, 50 * kMs);
  EXPECT_EQ(FindLaunch(MakePlan(), head), nullptr) << "a query may go on at any time";
  head.awaited_by_lc = true;
  EXPECT_TRUE(IsLaunched(MakePlan(), head, {.place = view_.rest}));
  RunningView& running = builder_.AddRunningBe(be, evictable_, 50 * kMs, {{view_.rest}});
  running.task.awaited_by_lc = true;
  EXPECT_EQ(FindEviction(MakePlan(), running.task, view_.rest), nullptr);
  AddJob(service);
  EXPECT_NE(FindEviction(MakePlan(), running.task, view_.rest), nullptr);
}

TEST_F(PartitionedTest, WithoutAPlanItPlansAsAdaptiveDoes) {
  builder_.snapshot.partitions = nullptr;
  const HeadView& head = builder_.AddBeHead(builder_.AddBeApp(), evictable_, 50 * kMs);
  EXPECT_TRUE(IsLaunched(MakePlan(), head, {.place = kWholeDevice}));
}

}  // namespace
}  // namespace gpushare::core
