// An application's own policy may ask for anything. What cannot be done is dropped, with a reason
// that its author can read, and stops nobody: no task fails, and other work goes on.

#include <gpushare/gpushare_policy.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

using Heads = std::vector<gpushare_head_view>;

// Plans what the test says.
struct Planner {
  std::function<void(const gpushare_snapshot&, const Heads&, gpushare_plan&)> plan;
  std::atomic<int> plans{0};
};

void MakePlan(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Planner& planner = *static_cast<Planner*>(user);
  ++planner.plans;
  Heads heads;
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    heads.push_back(*GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i));
  }
  planner.plan(*snapshot, heads, *plan);
}

gpushare_planned_launch& Add(gpushare_plan& plan, const gpushare_head_view& head,
                             gpushare_form form, gpushare_lane_class lane_class,
                             int32_t place = 0) {
  gpushare_planned_launch& launch = plan.launches[plan.launch_count++];
  launch.task = head.task;
  launch.form = form;
  launch.lane_class = lane_class;
  launch.place = place;
  return launch;
}

class UserPolicyPlan : public testing::Test {
 protected:
  void SetUp() override {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
    table_.name = "own";
    table_.make_plan = MakePlan;
    table_.user = &planner_;
  }
  void TearDown() override { api_.Close(); }

  void Use(std::function<void(const gpushare_snapshot&, const Heads&, gpushare_plan&)> plan) {
    planner_.plan = std::move(plan);
    ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  }
  void RunFor(int64_t ns) const { ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + ns)); }
  bool IsComplete(gpushare_ticket ticket) const {
    gpushare_bool complete = 0;
    EXPECT_OK(gpushare_ticket_poll(api_.runtime, ticket, &complete));
    return complete == 1;
  }
  int64_t Dropped() const {
    size_t size = 0;
    gpushare_metrics_text(api_.runtime, nullptr, 0, &size);
    std::string text(size + 1, 0);
    EXPECT_OK(gpushare_metrics_text(api_.runtime, text.data(), text.size(), &size));
    const std::string sample = "\ngpushare_plan_entries_dropped_total{simulated=\"true\"} ";
    const size_t at = text.find(sample);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size()));
  }
  // The plan is dropped, and the task runs once another policy decides.
  void ExpectDropped(gpushare_ticket ticket) const {
    RunFor(1'000'000);
    EXPECT_FALSE(IsComplete(ticket));
    EXPECT_GT(Dropped(), 0);
    ASSERT_OK(gpushare_set_policy(api_.runtime, "priority"));
    const gpushare_completion_record record = api_.Finish(ticket);
    EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(record.hold_reason, GPUSHARE_REASON_HOLD_PLAN);
  }

  Planner planner_;
  gpushare_policy_table table_ = GPUSHARE_POLICY_TABLE_INIT;
  Api api_;
};

TEST_F(UserPolicyPlan, AFormThatTheTaskDoesNotHaveIsDropped) {
  for (const gpushare_form form :
       {GPUSHARE_FORM_GRAPH, GPUSHARE_FORM_LIBRARY, GPUSHARE_FORM_MEMCPY, GPUSHARE_FORM_OPAQUE}) {
    Use([form](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
      for (const gpushare_head_view& head : heads) Add(plan, head, form, GPUSHARE_LANE_BE);
    });
    ExpectDropped(api_.Submit(api_.BeTask(), false));
  }
}

TEST_F(UserPolicyPlan, WorkersOfAGraphAreDropped) {
  Use([](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_WORKERS, GPUSHARE_LANE_LC);
    }
  });
  ExpectDropped(api_.Submit(api_.LcTask(), true));
}

// The sides of a split have no copy lanes.
TEST_F(UserPolicyPlan, ALaneClassThatThePlaceLacksIsDropped) {
  Use([](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_ORIGINAL, GPUSHARE_LANE_COPY, 1);
    }
  });
  ExpectDropped(api_.Submit(api_.BeTask(), false));
}

// An LC queue is ordered by its lane, and the gate counts each task once. A second launch entered
// it twice, and no BE task ran again.
TEST_F(UserPolicyPlan, TheSecondPartOfAnLcTaskIsDroppedAndTheGateOpensAgain) {
  Use([](const gpushare_snapshot& snapshot, const Heads& heads, gpushare_plan& plan) {
    const auto& split =
        *GPUSHARE_AT(gpushare_split_view, snapshot.splits, snapshot.split_stride, 8);
    for (uint32_t i = 0; i < snapshot.lc_app_count; ++i) plan.routes[i].place = split.lc_place;
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_WORKERS, GPUSHARE_LANE_BE, split.lc_place);
      Add(plan, head, GPUSHARE_FORM_WORKERS, GPUSHARE_LANE_BE, split.be_place);
    }
  });
  gpushare_task_options lc = api_.BeTask(100'000);
  const gpushare_completion_record record = api_.Finish(api_.Submit(lc, true));
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.launches, 1);
  EXPECT_GT(Dropped(), 0);
  ASSERT_OK(gpushare_set_policy(api_.runtime, "adaptive"));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
}

TEST_F(UserPolicyPlan, ABeTaskMayRunInTwoParts) {
  Use([](const gpushare_snapshot& snapshot, const Heads& heads, gpushare_plan& plan) {
    const auto& split =
        *GPUSHARE_AT(gpushare_split_view, snapshot.splits, snapshot.split_stride, 8);
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_WORKERS, GPUSHARE_LANE_BE, split.lc_place);
      Add(plan, head, GPUSHARE_FORM_WORKERS, GPUSHARE_LANE_BE, split.be_place);
    }
  });
  const gpushare_completion_record record = api_.Finish(api_.Submit(api_.BeTask(100'000), false));
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.launches, 2);
  EXPECT_EQ(Dropped(), 0);
}

// A grid that is cut short is a slice: each block task runs once.
TEST_F(UserPolicyPlan, AnOriginalGridThatIsCutRunsAsSlices) {
  Use([](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_ORIGINAL, GPUSHARE_LANE_PLAIN).blocks_max = 300;
    }
  });
  const gpushare_completion_record record = api_.Finish(api_.Submit(api_.BeTask(1000), false));
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.form, GPUSHARE_FORM_SLICE);
  EXPECT_EQ(record.launches, 4);
  EXPECT_EQ(record.block_tasks, 1000);
}

TEST_F(UserPolicyPlan, AMalformedEntryIsCounted) {
  Use([](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_ORIGINAL, GPUSHARE_LANE_PLAIN, 1000);
      Add(plan, head, GPUSHARE_FORM_ORIGINAL, GPUSHARE_LANE_PLAIN).workers = -1;
      Add(plan, head, GPUSHARE_FORM_ORIGINAL, GPUSHARE_LANE_PLAIN);
    }
  });
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Dropped(), 2);
}

TEST_F(UserPolicyPlan, AWakeUpTimeIsKeptWithoutWork) {
  Use([](const gpushare_snapshot& snapshot, const Heads&, gpushare_plan& plan) {
    plan.replan_at_ns = snapshot.now_ns + 100'000;
  });
  RunFor(1'050'000);
  EXPECT_EQ(planner_.plans.load(), 11);
}

TEST_F(UserPolicyPlan, AWakeUpTimeThatHasComeAsksForNothing) {
  Use([](const gpushare_snapshot& snapshot, const Heads&, gpushare_plan& plan) {
    plan.replan_at_ns = snapshot.now_ns;
  });
  const gpushare_ticket held = api_.Submit(api_.BeTask(), false);
  RunFor(1'000'000'000);
  EXPECT_LT(planner_.plans.load(), 10);
  EXPECT_FALSE(IsComplete(held));
}

// Each launch is dropped by the launch stage, so that the plan is never empty.
TEST_F(UserPolicyPlan, APlanThatIsDroppedDoesNotStopAShutdown) {
  ASSERT_OK(gpushare_runtime_quiesce(api_.runtime, api_.Deadline()));
  Use([](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_MEMCPY, GPUSHARE_LANE_BE);
    }
  });
  std::vector<gpushare_ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(api_.Submit(api_.BeTask(), false));
  tickets.push_back(api_.Submit(api_.LcTask(), true));
  ASSERT_OK(gpushare_runtime_shutdown(api_.runtime, GPUSHARE_NEVER));
  for (const gpushare_ticket ticket : tickets) {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_OK(gpushare_ticket_record(api_.runtime, ticket, &record));
    EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
    EXPECT_OK(gpushare_ticket_release(api_.runtime, ticket));
  }
}

// Its ticket is not released, so that the plan may still name it; others read its record.
TEST_F(UserPolicyPlan, ACompletedTaskIsNeitherHeldNorEvicted) {
  const gpushare_ticket done = api_.Submit(api_.BeTask(), false);
  ASSERT_OK(gpushare_ticket_wait(api_.runtime, done, api_.Deadline()));
  gpushare_completion_record before = GPUSHARE_COMPLETION_RECORD_INIT;
  ASSERT_OK(gpushare_ticket_record(api_.runtime, done, &before));
  ASSERT_NE(before.hold_reason, GPUSHARE_REASON_HOLD_CAPSM);
  Use([done](const gpushare_snapshot&, const Heads& heads, gpushare_plan& plan) {
    plan.holds[plan.hold_count].task = done;
    plan.holds[plan.hold_count++].reason = GPUSHARE_REASON_HOLD_CAPSM;
    plan.evictions[plan.eviction_count++].task = done;
    for (const gpushare_head_view& head : heads) {
      Add(plan, head, GPUSHARE_FORM_ORIGINAL, GPUSHARE_LANE_PLAIN);
    }
  });
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_GT(Dropped(), 0);
  EXPECT_EQ(Dropped() % 2, 0);
  const gpushare_completion_record record = api_.Finish(done);
  EXPECT_EQ(record.hold_reason, before.hold_reason);
}

// The clock of the simulated device is the caller's: it must not run away while nobody waits.
TEST(UserPolicyThread, AWakeUpTimeWithoutWorkLeavesTheThreadAsleep) {
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_THREAD});
  Planner planner;
  planner.plan = [](const gpushare_snapshot& snapshot, const Heads&, gpushare_plan& plan) {
    plan.replan_at_ns = snapshot.now_ns + 1;
  };
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
  table.name = "own";
  table.make_plan = MakePlan;
  table.user = &planner;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  ASSERT_OK(gpushare_set_user_policy(api.runtime, &table));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  while (planner.plans <= 1 && Clock::now() - begin < std::chrono::seconds(10)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_OK(gpushare_set_policy(api.runtime, "priority"));
  const auto naps = (Clock::now() - begin) / std::chrono::milliseconds(2);  // a nap takes 2 ms
  EXPECT_LE(planner.plans.load(), naps + 10);
  EXPECT_GT(planner.plans.load(), 1);
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
