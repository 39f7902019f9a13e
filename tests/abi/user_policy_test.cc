// A policy of the application's own, through its C table: it decides, it is bounded, it is
// destroyed once. Public headers only.

#include <gpushare/gpushare_policy.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

struct Planner {
  int plans = 0;
  int destroyed = 0;
  bool hold_be = false;
  bool nonsense = false;
  int32_t reserved = 0;
  gpushare_runtime* runtime = nullptr;
  gpushare_status inside = GPUSHARE_OK;
  gpushare_arrangement stated = {-1, -1, GPUSHARE_SEGMENTS_NONE, 0};
  gpushare_arrangement in_force = {};  // as the last plan saw it
  gpushare_planned_choice choice = {};
};

void Plan(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Planner& planner = *static_cast<Planner*>(user);
  ++planner.plans;
  int64_t now_ns = 0;
  if (planner.runtime != nullptr) planner.inside = gpushare_now_ns(planner.runtime, &now_ns);
  EXPECT_EQ(snapshot->struct_size, sizeof(gpushare_snapshot));
  EXPECT_EQ(snapshot->lc_app_count + snapshot->be_app_count, 2u);
  EXPECT_GT(snapshot->place_count, 0u);
  planner.in_force = snapshot->in_force;
  EXPECT_EQ(plan->arrangement.split, -1);
  EXPECT_EQ(plan->arrangement.trial_kernel, -1);
  EXPECT_EQ(plan->arrangement.segments, GPUSHARE_SEGMENTS_NONE);
  for (uint32_t i = 0; i < snapshot->lc_app_count; ++i) {
    EXPECT_EQ(plan->waits_for_empty_sms[i], 0);
    plan->waits_for_empty_sms[i] = 1;
  }
  plan->arrangement = planner.stated;
  EXPECT_EQ(plan->choice.kind, GPUSHARE_CHOICE_NONE);
  EXPECT_EQ(plan->choice.runner_up, -1);
  EXPECT_EQ(plan->choice.shift_ns, -1);
  plan->choice = planner.choice;
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const gpushare_head_view* const head =
        GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    EXPECT_NE(head->task.value, 0u);
    if (planner.nonsense) {
      plan->launches[plan->launch_count++] = {{~uint64_t{0}}, {0}, 0, 1, 0, 0, 0, 0, 0, {}};
      plan->launches[plan->launch_count++] = {head->task, {0}, -1, 1, 0, 0, 0, 0, 0, {}};
      plan->launches[plan->launch_count++] = {head->task, {0}, 0, 1, 99, 0, 0, 0, 0, {}};
      plan->launches[plan->launch_count++] = {head->task, {0}, 0, 1, 0, 1000, 0, 0, 0, {}};
      plan->evictions[plan->eviction_count++] = {{77}, 0, 0, 0, 0};
      plan->holds[plan->hold_count++] = {{~uint64_t{0}}, 0, 0, -5, 0};
    }
    const bool be = head->app_class == GPUSHARE_CLASS_BEST_EFFORT;
    if (be && planner.hold_be) continue;
    gpushare_planned_launch launch = {};
    launch.task = head->task;
    launch.form = be ? GPUSHARE_FORM_WORKERS : GPUSHARE_FORM_GRAPH;
    launch.lane_class = be ? GPUSHARE_LANE_BE : GPUSHARE_LANE_LC;
    launch.reserved[1] = planner.reserved;
    plan->launches[plan->launch_count++] = launch;
  }
  if (planner.nonsense) plan->hold_count = 0xffffffffu;
}

// What a plan showed of fused kernels and co-schedules.
struct Overlap {
  uint32_t fused = 0;
  uint32_t rows = 0;
  double ratio_below = 0, ratio_at = 0;
  int32_t index = -2;
  bool beside_itself = false, beyond = true;
  int32_t workers = 0;
};

void PlanAndSeeOverlap(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Overlap& seen = *static_cast<Overlap*>(user);
  seen.fused = snapshot->fused_count;
  seen.rows = snapshot->co_schedule_kernels;
  if (seen.fused > 0) {
    const gpushare_fused_view* const fused =
        GPUSHARE_AT(gpushare_fused_view, snapshot->fused, snapshot->fused_stride, 0);
    seen.ratio_below = gpushare_fused_ratio(fused, 0.4);
    seen.ratio_at = gpushare_fused_ratio(fused, 0.8);
  }
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const gpushare_head_view* const head =
        GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    seen.index = head->overlap_index;
    const gpushare_co_schedule_option* const option =
        gpushare_co_schedule_at(snapshot, seen.index, seen.index, 1);
    seen.beside_itself = option != nullptr;
    if (option != nullptr) seen.workers = option->workers_per_sm[0] + option->workers_per_sm[1];
    seen.beyond = gpushare_co_schedule_at(snapshot, seen.index, 1000, 0) != nullptr ||
                  gpushare_co_schedule_at(snapshot, seen.index, -1, 0) != nullptr ||
                  gpushare_co_schedule_at(snapshot, 0, 0, GPUSHARE_CO_SCHEDULE_RATIOS) != nullptr;
    gpushare_planned_launch launch = {};
    launch.task = head->task;
    launch.form = GPUSHARE_FORM_WORKERS;
    launch.lane_class = GPUSHARE_LANE_BE;
    plan->launches[plan->launch_count++] = launch;
  }
}

// Runs BE graphs in segments of such a length.
struct Length {
  int64_t longest_ns = 0;
  int64_t given_ns = -1;
};

void PlanSegments(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Length& length = *static_cast<Length*>(user);
  length.given_ns = plan->longest_segment_ns;
  plan->longest_segment_ns = length.longest_ns;
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const gpushare_head_view* const head =
        GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    gpushare_planned_launch launch = {};
    launch.task = head->task;
    launch.form = GPUSHARE_FORM_SEGMENTS;
    launch.lane_class = GPUSHARE_LANE_BE;
    plan->launches[plan->launch_count++] = launch;
  }
}

std::array<int64_t, 4> Numbers(const gpushare_event& event) {
  return {event.a, event.b, event.c, event.d};
}

using Events = std::vector<gpushare_event>;

// The events CHOICE and CHOICE_SHIFT of an event log.
std::pair<Events, Events> ChoicesIn(const std::string& path) {
  gpushare_event_log* log = nullptr;
  int64_t count = 0;
  EXPECT_OK(gpushare_event_log_open(path.c_str(), &log, &count));
  std::pair<Events, Events> found;
  for (int64_t i = 0; i < count; ++i) {
    gpushare_event event = GPUSHARE_EVENT_INIT;
    EXPECT_OK(gpushare_event_log_get(log, i, &event));
    if (event.type == GPUSHARE_EVENT_CHOICE) found.first.push_back(event);
    if (event.type == GPUSHARE_EVENT_CHOICE_SHIFT) found.second.push_back(event);
  }
  EXPECT_OK(gpushare_event_log_release(log));
  return found;
}

class UserPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
    table_.name = "own";
    table_.make_plan = Plan;
    table_.destroy = [](void* user) { ++static_cast<Planner*>(user)->destroyed; };
    table_.user = &planner_;
  }
  void TearDown() override { api_.Close(); }

  Planner planner_;
  gpushare_policy_table table_ = GPUSHARE_POLICY_TABLE_INIT;
  Api api_;
};

TEST_F(UserPolicyTest, ItsLaunchesHappenAndCarryItsReason) {
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  const gpushare_completion_record record = api_.Finish(api_.Submit(api_.BeTask(), false));
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.form, GPUSHARE_FORM_WORKERS);
  EXPECT_EQ(record.launch_reason, GPUSHARE_REASON_USER_POLICY);
  EXPECT_GT(planner_.plans, 0);
}

TEST_F(UserPolicyTest, ItSeesFusedKernelsAndCoSchedules) {
  gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_kernel* tensor = nullptr;
  kernel.name = "gemm_mma";
  ASSERT_OK(gpushare_kernel_register(api_.runtime, &kernel, &tensor));
  gpushare_fused_kernel_options options = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
  options.name = "pair";
  options.tensor_part = tensor;
  options.cuda_part = api_.sincos;
  options.opportune_load_ratio = 0.8;
  options.opportune_duration_ratio = 1.2;
  gpushare_fused_kernel* fused = nullptr;
  ASSERT_OK(gpushare_fused_kernel_register(api_.runtime, &options, &fused));
  Overlap seen;
  table_.make_plan = PlanAndSeeOverlap;
  table_.destroy = nullptr;
  table_.user = &seen;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(seen.fused, 1u);
  EXPECT_DOUBLE_EQ(seen.ratio_below, 1.1);
  EXPECT_DOUBLE_EQ(seen.ratio_at, 1.2);
  EXPECT_EQ(seen.rows, 1u);
  EXPECT_EQ(seen.index, 0);
  EXPECT_TRUE(seen.beside_itself);
  EXPECT_FALSE(seen.beyond);
  EXPECT_GE(seen.workers, 2);
  ASSERT_OK(gpushare_set_policy(api_.runtime, "fifo"));
  EXPECT_OK(gpushare_fused_kernel_release(fused));
  EXPECT_OK(gpushare_kernel_release(tensor));
}

// Each of seven segments costs 1.6 us of a graph that takes 0.66 ms. A graph of which nobody
// measured the nodes runs in its own segments first.
TEST_F(UserPolicyTest, ItSaysHowLongSegmentsAre) {
  Length length;
  table_.make_plan = PlanSegments;
  table_.destroy = nullptr;
  table_.user = &length;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  gpushare_task_options step = GPUSHARE_TASK_OPTIONS_INIT;
  step.kernel = api_.graph;
  const auto run = [&] {
    const gpushare_completion_record record = api_.Finish(api_.Submit(step, false));
    EXPECT_EQ(record.form, GPUSHARE_FORM_SEGMENTS);
    return record.end_ns - record.start_ns;
  };
  int64_t own_ns = 0;
  for (int i = 0; i < 12; ++i) own_ns = run();
  EXPECT_EQ(length.given_ns, 0);
  for (const int64_t longest_ns : {GPUSHARE_NEVER, GPUSHARE_NEVER - 1}) {
    length.longest_ns = longest_ns;
    run();
    EXPECT_LT(run(), own_ns - 5 * kUs) << longest_ns;
  }
  for (const int64_t longest_ns : {int64_t{0}, int64_t{-1}}) {
    length.longest_ns = longest_ns;
    run();
    EXPECT_EQ(run(), own_ns) << longest_ns;
  }
  ASSERT_OK(gpushare_set_policy(api_.runtime, "fifo"));
}

TEST_F(UserPolicyTest, TheNextSnapshotRepeatsTheArrangementThatItStated) {
  planner_.stated = {1, -1, GPUSHARE_SEGMENTS_ON_SPLIT, 0};
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(planner_.in_force.split, 1);
  EXPECT_EQ(planner_.in_force.trial_kernel, -1);
  EXPECT_EQ(planner_.in_force.segments, GPUSHARE_SEGMENTS_ON_SPLIT);
}

TEST_F(UserPolicyTest, AnArrangementThatCannotBeIsNotInForce) {
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  for (const gpushare_arrangement wrong : {gpushare_arrangement{10'000, -1, 1, 0},
                                           {-2, -1, 1, 0},
                                           {-1, 0, 1, 0},
                                           {1, 10'000, 1, 0},
                                           {1, -2, 1, 0},
                                           {1, -1, 3, 0},
                                           {1, -1, -1, 0},
                                           {1, -1, 1, 1}}) {
    planner_.stated = wrong;
    EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(planner_.in_force.split, -1);
    EXPECT_EQ(planner_.in_force.trial_kernel, -1);
    EXPECT_EQ(planner_.in_force.segments, GPUSHARE_SEGMENTS_NONE);
  }
}

TEST_F(UserPolicyTest, TheEventLogSaysWhatItChoseBetween) {
  const std::string path = testing::TempDir() + "/user_policy_choice.bin";
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.event_log_path = path.c_str();
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  ASSERT_OK(gpushare_trace_start(api_.runtime, &trace));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  planner_.choice = {{{0}, {0}}, 84, 132, 712, 690, 120, 140, 30, 150, GPUSHARE_CHOICE_LAYOUT, 0};
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_OK(gpushare_trace_stop(api_.runtime, nullptr));
  const auto [choices, shifts] = ChoicesIn(path);
  ASSERT_EQ(choices.size(), 1u) << "a plan that does not say is not logged";
  EXPECT_EQ(choices[0].detail, GPUSHARE_CHOICE_LAYOUT);
  EXPECT_EQ(Numbers(choices[0]), (std::array<int64_t, 4>{84, 132, 712, 690}));
  ASSERT_EQ(shifts.size(), 1u);
  EXPECT_EQ(Numbers(shifts[0]), (std::array<int64_t, 4>{120, 30, 140, 150}));
}

TEST_F(UserPolicyTest, WhatItHoldsDoesNotRun) {
  planner_.hold_be = true;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  const gpushare_ticket be = api_.Submit(api_.BeTask(), false);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
  gpushare_bool complete = 1;
  ASSERT_OK(gpushare_ticket_poll(api_.runtime, be, &complete));
  EXPECT_EQ(complete, 0);
  ASSERT_OK(gpushare_set_policy(api_.runtime, "fifo"));
  EXPECT_EQ(planner_.destroyed, 1);
  EXPECT_EQ(api_.Finish(be).verdict, GPUSHARE_VERDICT_OK);
}

TEST_F(UserPolicyTest, NonsenseInAPlanIsDropped) {
  planner_.nonsense = true;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
}

// A later version may give the field a meaning that this library does not know: it drops the entry.
TEST_F(UserPolicyTest, AnEntryWithAReservedFieldIsDropped) {
  planner_.reserved = 1;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  const gpushare_ticket be = api_.Submit(api_.BeTask(), false);
  EXPECT_EQ(gpushare_runtime_drain(api_.runtime, 1000 * 1000 * 1000), GPUSHARE_DEADLINE_EXCEEDED);
  planner_.reserved = 0;
  ASSERT_OK(gpushare_set_policy(api_.runtime, "fifo"));
  EXPECT_EQ(api_.Finish(be).verdict, GPUSHARE_VERDICT_OK);
}

TEST_F(UserPolicyTest, ACallFromInsideAPlanIsRefused) {
  planner_.runtime = api_.runtime;
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(planner_.inside, GPUSHARE_FAILED_PRECONDITION);
}

TEST_F(UserPolicyTest, ItIsDestroyedOnceWithTheRuntime) {
  ASSERT_OK(gpushare_set_user_policy(api_.runtime, &table_));
  EXPECT_EQ(planner_.destroyed, 0);
  api_.Close();
  EXPECT_EQ(planner_.destroyed, 1);
}

TEST_F(UserPolicyTest, ATableThatIsNotGoodIsRefusedAndItsUserLeftAlone) {
  gpushare_policy_table bad = table_;
  bad.version = GPUSHARE_POLICY_VERSION + 1;
  EXPECT_FAILS(gpushare_set_user_policy(api_.runtime, &bad), GPUSHARE_UNIMPLEMENTED, "version");
  bad = table_;
  bad.name = nullptr;
  EXPECT_FAILS(gpushare_set_user_policy(api_.runtime, &bad), GPUSHARE_INVALID_ARGUMENT, "name");
  bad = table_;
  bad.make_plan = nullptr;
  EXPECT_FAILS(gpushare_set_user_policy(api_.runtime, &bad), GPUSHARE_INVALID_ARGUMENT,
               "make_plan");
  EXPECT_FAILS(gpushare_set_user_policy(api_.runtime, nullptr), GPUSHARE_INVALID_ARGUMENT, "null");
  EXPECT_EQ(planner_.destroyed, 0);
}

}  // namespace
}  // namespace gpushare_test
