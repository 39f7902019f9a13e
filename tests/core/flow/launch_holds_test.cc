// Why the launch stage holds a task that the plan launches: each cause has its own reason.

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/policies/registry.h"
#include "src/core/seams/event_sink.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// Keeps the holds.
class Holds final : public EventSink {
 public:
  void Append(const EventRecord& record) override {
    if (record.type == static_cast<uint8_t>(EventType::kHeld))
      holds.push_back(Decode<Held>(record));
  }
  std::vector<Held> holds;
};

class LaunchHoldsTest : public SimulatedSchedulerTest {
 protected:
  void Start(std::unique_ptr<Policy> policy) {
    SchedulerOptions options;
    options.events = &sink_;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy), options));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  }
  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = 100000;
    spec.detached = true;
    return spec;
  }
  // The only reason of a hold, with the limit that it names.
  void ExpectHolds(Reason reason, int64_t limit) {
    ASSERT_FALSE(sink_.holds.empty());
    for (const Held& held : sink_.holds) {
      EXPECT_EQ(held.reason, reason);
      EXPECT_EQ(held.limit_ns, limit);
    }
  }

  Holds sink_;
  KernelId kernel_;
};

TEST_F(LaunchHoldsTest, APlaceWithoutALaneOfTheClassIsHoldPlan) {
  Start(std::make_unique<PlanWith>([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      launch.place = snapshot.splits[0].be_place;
      launch.lane_class = LaneClass::kCopy;  // a split has none
    }
  }));
  ASSERT_TRUE(scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "be"))).ok());
  scheduler_->Tick();
  ExpectHolds(Reason::kHoldPlan, 0);
}

// Behind another launch it would wait whatever SMs are free, and block what shares its hardware
// queue.
TEST_F(LaunchHoldsTest, OneLaunchWithinAQuotaMoreThanThereAreLanesIsHoldLane) {
  Start(std::make_unique<PlanWith>([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      launch.form = Form::kWorkers;
      launch.lane_class = LaneClass::kBe;
      launch.workers = 1;
    }
  }));
  const auto submit = [&](int32_t quota) {
    AppOptions options;
    options.name = "be";
    const AppId app = *scheduler_->CreateApp(options);
    if (quota > 0) {
      ASSERT_TRUE(scheduler_->ReserveCapSm({app, quota, false}).ok());
    }
    ASSERT_TRUE(scheduler_->SubmitBe(Spec(*scheduler_->CreateQueue(app))).ok());
  };
  for (int i = 0; i < kQuotaLanes; ++i) submit(12);
  scheduler_->Tick();
  EXPECT_TRUE(sink_.holds.empty());
  for (int i = 0; i < 2; ++i) submit(0);
  scheduler_->Tick();
  EXPECT_TRUE(sink_.holds.empty()) << "others wait on a lane";
  submit(12);
  scheduler_->Tick();
  ExpectHolds(Reason::kHoldLane, 0);
  EXPECT_EQ(sink_.holds.size(), 1U);
}

TEST_F(LaunchHoldsTest, OneBeTaskMoreThanMayRunIsHoldRunning) {
  Start(*MakePolicy("fifo"));
  AppOptions options;
  options.name = "be";
  const AppId app = *scheduler_->CreateApp(options);
  for (int i = 0; i <= kMaxRunning; ++i) {
    ASSERT_TRUE(scheduler_->SubmitBe(Spec(*scheduler_->CreateQueue(app))).ok());
  }
  scheduler_->Tick();
  ExpectHolds(Reason::kHoldRunning, kMaxRunning);
  EXPECT_EQ(sink_.holds.size(), 1U);
}

TEST_F(LaunchHoldsTest, OneLaunchMoreThanMayBeInFlightIsHoldLaunches) {
  Start(*MakePolicy("fifo"));
  for (int i = 0; i <= kMaxInFlightLaunches / kLcWindow; ++i) {
    const QueueId queue = AddQueue(AppClass::kLatencyCritical, "lc" + std::to_string(i));
    const TaskSpec spec = Spec(queue);
    for (int task = 0; task < kLcWindow; ++task) ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  }
  for (int i = 0; i < 20; ++i) scheduler_->Tick();
  ExpectHolds(Reason::kHoldLaunches, kMaxInFlightLaunches);
}

// The policy asks for a fifth launch of a task whose four launches have not ended.
TEST_F(LaunchHoldsTest, OneLaunchOfATaskMoreThanItMayHaveIsHoldParts) {
  Start(std::make_unique<PlanWith>([](const Snapshot& snapshot, Plan& plan) {
    const auto launch = [&](TicketId task) {
      PlannedLaunch& planned = plan.launches.Add();
      planned.task = task;
      planned.form = Form::kWorkers;
      planned.lane_class = LaneClass::kBe;
      planned.workers = 1;
    };
    for (const HeadView& head : snapshot.heads) launch(head.task);
    for (const RunningView& running : snapshot.running) {
      for (int i = 0; i < kMaxPartsPerTask; ++i) launch(running.task.task);
    }
  }));
  ASSERT_TRUE(scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "be"))).ok());
  scheduler_->Tick();
  AddQueue(AppClass::kBestEffort, "another");  // asks for another plan
  scheduler_->Tick();
  ExpectHolds(Reason::kHoldParts, kMaxPartsPerTask);
}

// Keeps the choices.
class Choices final : public EventSink {
 public:
  void Append(const EventRecord& record) override {
    if (record.type == static_cast<uint8_t>(EventType::kChoice)) {
      choices.push_back(Decode<Choice>(record));
    } else if (record.type == static_cast<uint8_t>(EventType::kChoiceShift)) {
      shifts.push_back(Decode<ChoiceShift>(record));
    }
  }
  std::vector<Choice> choices;
  std::vector<ChoiceShift> shifts;
};

class LaunchChoicesTest : public SimulatedSchedulerTest {
 protected:
  Choices sink_;
  PlannedChoice choice_;  // the policy's; the scheduler still plans when a test has ended
};

// Not for other values alone, but again after a while, for a trace that began meanwhile.
TEST_F(LaunchChoicesTest, AChoiceIsLoggedWhenItChangesAndForEachOfItsTasks) {
  SchedulerOptions options;
  options.events = &sink_;
  choice_.kind = ChoiceKind::kLayout;
  choice_.chosen = 84;
  choice_.runner_up = 92;
  choice_.value = 5;
  ASSERT_NO_FATAL_FAILURE(StartScheduler(
      std::make_unique<PlanWith>([this](const Snapshot&, Plan& plan) { plan.choice = choice_; }),
      options));
  KernelId kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  const QueueId queue = AddQueue(AppClass::kBestEffort, "be");
  const auto plan_again = [&] {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = 1000;
    spec.detached = true;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
    scheduler_->Tick();
  };
  plan_again();
  plan_again();
  choice_.value = 6;
  plan_again();
  ASSERT_EQ(sink_.choices.size(), 1U);
  EXPECT_EQ(sink_.choices[0].chosen, 84);
  EXPECT_EQ(sink_.choices[0].runner_up, 92);
  EXPECT_EQ(sink_.choices[0].value, 5);
  EXPECT_EQ(sink_.choices[0].ticket.value, 0U);
  EXPECT_TRUE(sink_.shifts.empty()) << "the policy says none";
  choice_.shift = {120, 140};
  choice_.runner_up_shift = {30, 150};
  choice_.runner_up = PlannedChoice::kNoRunnerUp;
  plan_again();
  EXPECT_EQ(sink_.choices.size(), 2U);
  ASSERT_EQ(sink_.shifts.size(), 1U);
  EXPECT_EQ(sink_.shifts[0].shift_ns, 120);
  EXPECT_EQ(sink_.shifts[0].runner_up_shift_ns, 30);
  EXPECT_EQ(sink_.shifts[0].limit_ns, 140);
  EXPECT_EQ(sink_.shifts[0].runner_up_limit_ns, 150);
  choice_.tasks = {TicketId{7}, TicketId{9}};
  plan_again();
  ASSERT_EQ(sink_.choices.size(), 4U);
  EXPECT_EQ(sink_.choices[2].ticket.value, 7U);
  EXPECT_EQ(sink_.choices[3].ticket.value, 9U);
}

}  // namespace
}  // namespace gpushare::core
