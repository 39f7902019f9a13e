// The flow's invariants: a flow in which one of them does not hold is found.

#include "src/core/flow/flow_check.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/core/policies/registry.h"
#include "src/core/state/flow.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kWorkers = 100;
constexpr int32_t kWorkersPerSm = 8;

// A BE launch that was evicted for a query beside it, as the flow records them.
class FlowCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(flow_.lanes.Create(*flow_.device, kMaxSplits).ok());
    be_ = &AddTask(AppClass::kBestEffort, LaneClass::kBe, 700);
    lc_ = &AddTask(AppClass::kLatencyCritical, LaneClass::kLc, 50);
    be_part().epoch = be_part().leave_epoch = flow_.gate.ReadLaunchEpoch(be_part().lane);
    flow_.gate.RaiseEpoch(be_part().lane);
    flow_.gate.EnterLc();
    lc_->progress.entered_gate = lc_->progress.evicts = true;
    ExpectFinds("");
  }

  Task& AddTask(AppClass app_class, LaneClass lane_class, int64_t issued_ns) {
    App& app = **flow_.tables.CreateApp({.name = "app", .app_class = app_class});
    flow_.ledger.AddApp(static_cast<int>(app.slot), app_class);
    const bool lc = app_class == AppClass::kLatencyCritical;
    (lc ? flow_.lc_apps : flow_.be_apps).Add(&app);
    Task& task = *flow_.tables.AllocateTask(app);
    task.progress.running_index = 0;
    lc ? static_cast<void>(flow_.running_lc.Add(&task))
       : static_cast<void>(flow_.running_be.Add(&task));
    task.progress.issued_ns = issued_ns;
    flow_.queued_ns += issued_ns;
    if (!lc) app.uses[kSmTime].on_device_ns = issued_ns;
    Part part;
    part.place = kWholeDevice;
    part.lane = flow_.lanes.Pick(kWholeDevice, lane_class, 0);
    part.workers = kWorkers;
    part.workers_per_sm = kWorkersPerSm;
    flow_.ledger.Charge(static_cast<int>(app.slot), kWorkers, kWorkersPerSm);
    ++flow_.lanes.lane(part.lane).parts;
    task.progress.parts.Add(part);
    return task;
  }
  Part& be_part() { return be_->progress.parts[0]; }

  // "": nothing.
  void ExpectFinds(const std::string& what) const {
    const absl::Status status = CheckFlow(flow_);
    EXPECT_EQ(status.ok(), what.empty()) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
  // A value that is off by one either way is found, and nothing is once it is right again.
  template <class Value>
  void ExpectExact(Value& value, const std::string& what) {
    for (const int off : {1, -1}) {
      value = static_cast<Value>(value + off);
      ExpectFinds(what);
      value = static_cast<Value>(value - off);
    }
    ExpectFinds("");
  }

  Flow flow_{SchedulerOptions(), null::MakeNullDevice(), models::MakeOnlineModel(DeviceProfile()),
             *MakePolicy("fifo")};
  Task* be_ = nullptr;
  Task* lc_ = nullptr;
};

TEST_F(FlowCheckTest, ATaskThatIsAtAnotherPlaceOfItsListIsFound) {
  ExpectExact(be_->progress.running_index, "of its list and records");
  ExpectExact(lc_->progress.running_index, "of its list and records");
}

TEST_F(FlowCheckTest, SumsThatAreNotThoseOfTheTasksAreFound) {
  ExpectExact(flow_.queued_ns, "and what is issued sums to 750 ns");
  ExpectExact(flow_.uncommitted_ns, "and what evictions leave undone sums to 0 ns");
  for (size_t resource = 0; resource < kSharedResources; ++resource) {
    ExpectExact(be_->app->uses[resource].on_device_ns, "and their tasks sum to 700");
    ExpectExact(be_->app->uses[resource].queues, "queues with a head, and 0 have one");
    ExpectExact(lc_->app->uses[resource].queues, "queues with a head, and 0 have one");
  }
  for (const Task* task : {be_, lc_}) {
    const LaneIndex lane = task->progress.parts[0].lane;
    ExpectExact(flow_.lanes.lane(lane).parts, "launches and has 1");
  }
}

TEST_F(FlowCheckTest, CapSmsThatNoLaunchUsesAreFound) {
  flow_.ledger.Charge(static_cast<int>(be_->app->slot), 1, kWorkersPerSm);
  ExpectFinds("The CapSM ledger holds");
  flow_.ledger.Release(static_cast<int>(be_->app->slot), 2, kWorkersPerSm);
  ExpectFinds("The CapSM ledger holds");
}

TEST_F(FlowCheckTest, ATaskThatRunsWithoutALaunchOrBeforeWhatItWaitsForIsFound) {
  lc_->wait_tickets.Add(TicketId{7});
  ExpectFinds("runs and waits for 1 tickets");
  lc_->wait_tickets.Clear();
  ExpectFinds("");
  be_->progress.parts.Clear();
  ExpectFinds("runs without a launch");
}

TEST_F(FlowCheckTest, AnLcLaunchThatTheGateDoesNotCountIsFound) {
  flow_.gate.LeaveLc();
  ExpectFinds("The gate counts 0 LC launches, and 1 are in flight");
  flow_.gate.EnterLc();
  flow_.gate.EnterLc();  // a caller that has not launched yet
  ExpectFinds("");
}

TEST_F(FlowCheckTest, AnEvictionThatIsLostIsFound) {
  ++be_part().leave_epoch;
  ExpectFinds("was not evicted for ticket");
  // Nothing is lost if the query evicts nothing, or the launch cannot be evicted.
  lc_->progress.evicts = false;
  ExpectFinds("");
  lc_->progress.evicts = true;
  lc_->progress.entered_gate = false;
  ExpectFinds("");
  lc_->progress.entered_gate = true;
  be_part().epoch = 0;
  ExpectFinds("");
}

TEST_F(FlowCheckTest, AnEvictionIsOwedOnSharedSmsOnlyAndNotByThePartnerOfTheQuery) {
  ASSERT_FALSE(flow_.lanes.splits().empty());
  const SplitView& split = flow_.lanes.splits()[0];
  ++be_part().leave_epoch;
  be_part().place = split.be_place;
  lc_->progress.parts[0].place = split.lc_place;
  ExpectFinds("");
  be_part().place = split.lc_place;
  ExpectFinds("was not evicted for ticket");
  be_part().order_lane = lc_->progress.parts[0].lane;
  ExpectFinds("");
  ++be_part().order_lane;
  ExpectFinds("was not evicted for ticket");
}

}  // namespace
}  // namespace gpushare::core
