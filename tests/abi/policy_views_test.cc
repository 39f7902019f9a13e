// What a user's policy sees of a snapshot: every field that a policy of ours reads. Each field of
// the core's views has another value here, so a field that is forgotten or mixed up shows.

#include "bindings/c/policy_views.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <type_traits>

#include "bindings/c/field_count.h"

namespace gpushare::abi {
namespace {

// The values of a test: 1, 2, 3, ...
class Values {
 public:
  template <class... Field>
  void Fill(Field&... fields) {
    (Set(fields), ...);
  }

 private:
  template <class Field>
  void Set(Field& field) {
    if constexpr (std::is_same_v<Field, bool>) {
      field = true;
    } else {
      field = static_cast<Field>(++last_);
    }
  }
  int last_ = 0;
};

class PolicyViewsTest : public testing::Test {
 protected:
  const gpushare_snapshot& Convert() {
    snapshot_.lc_apps = {&lc_, 1};
    snapshot_.be_apps = {&be_, 1};
    snapshot_.queries = {&query_, 1};
    heads_ = {&head_};
    snapshot_.heads = core::HeadList({heads_.data(), heads_.size()});
    snapshot_.running = {&running_, 1};
    snapshot_.places = {&place_, 1};
    snapshot_.splits = {&split_, 1};
    return views_->Convert(snapshot_);
  }

  Values values_;
  core::LcAppView lc_;
  core::BeAppView be_;
  core::QueryView query_;
  core::KernelDesc kernel_;
  core::HeadView head_;
  std::array<const core::HeadView*, 1> heads_ = {};
  core::RunningView running_;
  core::PlaceView place_;
  core::SplitView split_;
  core::Snapshot snapshot_;
  const std::unique_ptr<PolicyViews> views_ = std::make_unique<PolicyViews>();
};

TEST(FieldCountTest, CountsFieldsOfAnyType) {
  struct One {
    bool flag;
  };
  struct Three {
    std::array<float, 4> numbers;
    core::HeadList list;
    One one;
  };
  EXPECT_EQ(FieldCount<One>(), 1u);
  EXPECT_EQ(FieldCount<Three>(), 3u);
}

TEST_F(PolicyViewsTest, AnLcAppShowsItsPromiseAndWhatItLeaves) {
  lc_.promise = {1'000'000, 1.2, 1.5, 100'000};
  lc_.solo_ns = 60'000;
  const gpushare_lc_app_view& seen = Convert().lc_apps[0];
  EXPECT_EQ(seen.target_ns, 1'000'000);
  EXPECT_DOUBLE_EQ(seen.p99_bound, 1.2);
  EXPECT_DOUBLE_EQ(seen.p50_bound, 1.5);
  EXPECT_EQ(seen.p99_alone_ns, 100'000);
  EXPECT_EQ(seen.latency_limit_ns, 120'000);
  EXPECT_EQ(seen.p99_slack_ns, lc_.promise.Slack(60'000));
  EXPECT_EQ(seen.p50_slack_ns, 30'000);
  EXPECT_DOUBLE_EQ(seen.split_p99_bound, lc_.promise.Planned(60'000, 0).p99_bound);
  EXPECT_EQ(seen.split_target_ns, lc_.promise.Planned(60'000, 0).target_ns);
}

TEST_F(PolicyViewsTest, AnAppThatPromisesNothingHasNoLimits) {
  lc_.promise = {};
  const gpushare_lc_app_view& seen = Convert().lc_apps[0];
  EXPECT_EQ(seen.p50_bound, 0);
  EXPECT_EQ(seen.latency_limit_ns, GPUSHARE_NEVER);
  EXPECT_EQ(seen.p99_slack_ns, GPUSHARE_NEVER);
  EXPECT_EQ(seen.p50_slack_ns, GPUSHARE_NEVER);
  EXPECT_EQ(seen.lag_slack_ns, GPUSHARE_NEVER);
  EXPECT_EQ(seen.split_p99_bound, 0);
  EXPECT_EQ(seen.split_target_ns, 0);
  EXPECT_EQ(seen.late_delay_ns, GPUSHARE_NEVER);
}

TEST_F(PolicyViewsTest, LateQueriesTakeFromTheSlackAndNotFromTheLimit) {
  lc_.promise = {.p99_bound = 1.2, .p99_alone_ns = 2'000'000};
  const gpushare_lc_app_view before = Convert().lc_apps[0];
  ASSERT_GT(before.p99_slack_ns, 100'000);
  lc_.promise.slack_share = 0.5;
  const gpushare_lc_app_view& seen = Convert().lc_apps[0];
  EXPECT_LE(std::abs(seen.p99_slack_ns - before.p99_slack_ns / 2), 1);
  EXPECT_LE(std::abs(seen.lag_slack_ns - before.lag_slack_ns / 2), 1);
  EXPECT_EQ(seen.latency_limit_ns, before.latency_limit_ns);
}

TEST_F(PolicyViewsTest, AnLcAppShowsWhatTheEvidenceSays) {
  values_.Fill(lc_.app.value, lc_.solo_ns, lc_.load, lc_.load_error, lc_.target_tail, lc_.peak_load,
               lc_.blocking_budget_ns, lc_.uncuttable_budget_ns, lc_.tail_rate, lc_.late_delay_ns,
               lc_.tail_credit, lc_.tail_need_per_ns, lc_.lag_ns, lc_.shadow_p99_ns,
               lc_.service_age_ns, lc_.reserved_capsms, lc_.packed, lc_.priority,
               lc_.active_queries, lc_.tasks_in_flight, lc_.idle_since_ns, lc_.main_kernel.value,
               lc_.lull_delay_ns, lc_.expected_by_ns, lc_.first_late_max, lc_.saved_vacation_ns);
  lc_.speed_beside_copies = {1.0F, 0.9F, 0.8F, 0.7F};
  const gpushare_lc_app_view& seen = Convert().lc_apps[0];
  EXPECT_EQ(seen.app_id, lc_.app.value);
  EXPECT_EQ(seen.solo_ns, lc_.solo_ns);
  EXPECT_EQ(seen.load, lc_.load);
  EXPECT_EQ(seen.load_error, lc_.load_error);
  EXPECT_EQ(seen.target_tail, lc_.target_tail);
  EXPECT_EQ(seen.peak_load, lc_.peak_load);
  EXPECT_EQ(seen.blocking_budget_ns, lc_.blocking_budget_ns);
  EXPECT_EQ(seen.uncuttable_budget_ns, lc_.uncuttable_budget_ns);
  EXPECT_EQ(seen.tail_rate_per_ns, lc_.tail_rate);
  EXPECT_EQ(seen.late_delay_ns, lc_.late_delay_ns);
  EXPECT_EQ(seen.tail_credit, lc_.tail_credit);
  EXPECT_EQ(seen.tail_need_per_ns, lc_.tail_need_per_ns);
  EXPECT_EQ(seen.lag_ns, lc_.lag_ns);
  EXPECT_EQ(seen.shadow_p99_ns, lc_.shadow_p99_ns);
  EXPECT_EQ(seen.service_age_ns, lc_.service_age_ns);
  EXPECT_EQ(seen.reserved_capsms, lc_.reserved_capsms);
  EXPECT_EQ(seen.packed, 1);
  EXPECT_EQ(seen.priority, lc_.priority);
  EXPECT_EQ(seen.lull_delay_ns, lc_.lull_delay_ns);
  EXPECT_EQ(seen.expected_by_ns, lc_.expected_by_ns);
  EXPECT_EQ(seen.first_late_max, lc_.first_late_max);
  EXPECT_EQ(seen.saved_vacation_ns, lc_.saved_vacation_ns);
  EXPECT_EQ(seen.active_queries, lc_.active_queries);
  EXPECT_EQ(seen.tasks_in_flight, lc_.tasks_in_flight);
  EXPECT_EQ(seen.idle_since_ns, lc_.idle_since_ns);
  EXPECT_EQ(seen.main_kernel_id, lc_.main_kernel.value);
  for (size_t copies = 0; copies < core::kLinkUses; ++copies) {
    EXPECT_EQ(seen.speed_beside_copies[copies], lc_.speed_beside_copies[copies]);
  }
}

// The core leaves the second budget at 0 where the first is the larger one.
TEST_F(PolicyViewsTest, TheBudgetOfUncuttableWorkIsNeverBelowTheOther) {
  lc_.blocking_budget_ns = 5'000;
  lc_.uncuttable_budget_ns = 0;
  EXPECT_EQ(Convert().lc_apps[0].uncuttable_budget_ns, 5'000);
}

TEST_F(PolicyViewsTest, ABeAppShowsItsShare) {
  values_.Fill(be_.app.value, be_.quota_capsms, be_.weight, be_.fair_weight, be_.used_capsms,
               be_.packed);
  for (size_t i = 0; i < core::kSharedResources; ++i) {
    values_.Fill(be_.attained_ns[i], be_.served_ns[i]);
  }
  const gpushare_be_app_view& seen = Convert().be_apps[0];
  EXPECT_EQ(seen.app_id, be_.app.value);
  EXPECT_EQ(seen.quota_capsms, be_.quota_capsms);
  EXPECT_EQ(seen.weight, be_.weight);
  EXPECT_EQ(seen.fair_weight, be_.fair_weight);
  EXPECT_EQ(seen.attained_ns, static_cast<int64_t>(be_.attained_ns[core::kSmTime]));
  EXPECT_EQ(seen.served_ns, be_.served_ns[core::kSmTime]);
  for (const auto copies :
       {GPUSHARE_COPY_HOST_TO_DEVICE, GPUSHARE_COPY_DEVICE_TO_HOST, GPUSHARE_COPY_PEER}) {
    const auto i = static_cast<size_t>(copies);
    EXPECT_EQ(seen.copies_attained_ns[i], static_cast<int64_t>(be_.attained_ns[i]));
    EXPECT_EQ(seen.copies_served_ns[i], be_.served_ns[i]);
  }
  EXPECT_EQ(seen.used_capsms, be_.used_capsms);
  EXPECT_EQ(seen.packed, 1);
}

TEST_F(PolicyViewsTest, AQueryShowsItsTimes) {
  values_.Fill(query_.query.value, query_.lc_app, query_.arrival_ns, query_.deadline_ns,
               query_.solo_ns, query_.issued_ns, query_.done_ns, query_.headroom_ns);
  const gpushare_query_view& seen = Convert().queries[0];
  EXPECT_EQ(seen.query.value, query_.query.value);
  EXPECT_EQ(seen.lc_app, query_.lc_app);
  EXPECT_EQ(seen.arrival_ns, query_.arrival_ns);
  EXPECT_EQ(seen.deadline_ns, query_.deadline_ns);
  EXPECT_EQ(seen.solo_ns, query_.solo_ns);
  EXPECT_EQ(seen.issued_ns, query_.issued_ns);
  EXPECT_EQ(seen.done_ns, query_.done_ns);
  EXPECT_EQ(seen.headroom_ns, query_.headroom_ns);
}

TEST_F(PolicyViewsTest, AHeadShowsItsTask) {
  values_.Fill(head_.task.value, head_.evictable, head_.confinable, head_.runs_alone, head_.app,
               head_.queue.value, head_.kernel_index, head_.ready_ns, head_.remaining.duration_ns,
               head_.remaining.error_ns, head_.remaining.trained, head_.eviction_ns,
               head_.eviction_p99_ns, head_.overlap_index, head_.ready_count, head_.eviction_known,
               head_.resumed, head_.followed, head_.pinned, head_.sequence, head_.query.value,
               head_.blocks_left, head_.segment_gain, head_.split_gain, head_.split_gain_known,
               head_.awaited_by_lc, kernel_.id.value, kernel_.resources.workers_per_sm_max,
               kernel_.resources.keeps_l1);
  head_.kind = core::TaskKind::kGraph;
  head_.direction = core::CopyDirection::kDeviceToHost;
  head_.kernel = &kernel_;
  const gpushare_head_view& seen = Convert().heads[0];
  EXPECT_EQ(seen.task.value, head_.task.value);
  EXPECT_EQ(seen.app_class, GPUSHARE_CLASS_BEST_EFFORT);
  EXPECT_EQ(seen.kind, GPUSHARE_TASK_GRAPH);
  EXPECT_EQ(seen.direction, GPUSHARE_COPY_DEVICE_TO_HOST);
  EXPECT_EQ(seen.app, head_.app);
  EXPECT_EQ(seen.queue_id, head_.queue.value);
  EXPECT_EQ(seen.kernel_index, head_.kernel_index);
  EXPECT_EQ(seen.ready_ns, head_.ready_ns);
  EXPECT_EQ(seen.remaining_ns, head_.remaining.duration_ns);
  EXPECT_EQ(seen.remaining_error_ns, head_.remaining.error_ns);
  EXPECT_EQ(seen.eviction_ns, head_.eviction_ns);
  EXPECT_EQ(seen.eviction_p99_ns, head_.eviction_p99_ns);
  EXPECT_EQ(seen.overlap_index, head_.overlap_index);
  EXPECT_EQ(seen.ready_count, head_.ready_count);
  EXPECT_EQ(seen.sequence, head_.sequence);
  EXPECT_EQ(seen.query.value, head_.query.value);
  EXPECT_EQ(seen.blocks_left, head_.blocks_left);
  EXPECT_EQ(seen.segment_gain, head_.segment_gain);
  EXPECT_EQ(seen.split_gain, head_.split_gain);
  EXPECT_EQ(seen.split_gain_known, head_.split_gain_known);
  EXPECT_EQ(seen.awaited_by_lc, head_.awaited_by_lc);
  EXPECT_EQ(seen.kernel_id, kernel_.id.value);
  EXPECT_EQ(seen.workers_per_sm_max, kernel_.resources.workers_per_sm_max);
}

// A field that is read in another's place would show only where the two differ.
TEST_F(PolicyViewsTest, AHeadShowsEachOfItsFlags) {
  head_.kernel = &kernel_;
  const struct {
    bool* flag;
    gpushare_bool gpushare_head_view::*seen;
  } flags[] = {
      {&head_.evictable, &gpushare_head_view::evictable},
      {&head_.confinable, &gpushare_head_view::confinable},
      {&head_.runs_alone, &gpushare_head_view::runs_alone},
      {&head_.eviction_known, &gpushare_head_view::eviction_known},
      {&head_.resumed, &gpushare_head_view::resumed},
      {&head_.followed, &gpushare_head_view::followed},
      {&head_.awaited_by_lc, &gpushare_head_view::awaited_by_lc},
      {&head_.pinned, &gpushare_head_view::pinned},
      {&head_.remaining.trained, &gpushare_head_view::trained},
      {&kernel_.resources.keeps_l1, &gpushare_head_view::keeps_l1},
  };
  for (const auto& on : flags) {
    *on.flag = true;
    const gpushare_head_view& view = Convert().heads[0];
    for (const auto& flag : flags) EXPECT_EQ(view.*flag.seen, flag.flag == on.flag ? 1 : 0);
    *on.flag = false;
  }
}

TEST_F(PolicyViewsTest, ARunningTaskShowsItsParts) {
  core::PartView part;
  values_.Fill(part.place, part.lane, part.workers, part.evicting, part.launched_ns,
               running_.places, running_.task.task.value, running_.draining);
  part.form = core::Form::kSegments;
  running_.parts.Add() = part;
  const gpushare_running_view& seen = Convert().running[0];
  ASSERT_EQ(seen.part_count, 1);
  EXPECT_EQ(seen.parts[0].place, part.place);
  EXPECT_EQ(seen.parts[0].lane, part.lane);
  EXPECT_EQ(seen.parts[0].workers, part.workers);
  EXPECT_EQ(seen.parts[0].evicting, 1);
  EXPECT_EQ(seen.parts[0].form, GPUSHARE_FORM_SEGMENTS);
  EXPECT_EQ(seen.parts[0].launched_ns, part.launched_ns);
  EXPECT_EQ(seen.places, running_.places);
  EXPECT_EQ(seen.task.task.value, running_.task.task.value);
  EXPECT_EQ(seen.task.draining, 1);
}

TEST_F(PolicyViewsTest, TheDeviceShowsItsPlacesCopiesAndPauses) {
  core::CopyState& copy = snapshot_.copies[2];
  values_.Fill(snapshot_.now_ns, snapshot_.plan_sequence, snapshot_.sm_count, snapshot_.capsms_free,
               snapshot_.queued_ns, snapshot_.return_hysteresis_ns, snapshot_.be_paused_until_ns,
               snapshot_.be_pauses_at_ns, copy.be_active, copy.lc_active, copy.be_limit,
               copy.lc_uses, place_.sms, place_.overlaps, split_.lc_place, split_.be_place,
               split_.lc_sms, split_.be_sms);
  const gpushare_snapshot& seen = Convert();
  EXPECT_EQ(seen.now_ns, snapshot_.now_ns);
  EXPECT_EQ(seen.plan_sequence, snapshot_.plan_sequence);
  EXPECT_EQ(seen.sm_count, snapshot_.sm_count);
  EXPECT_EQ(seen.capsms_free, snapshot_.capsms_free);
  EXPECT_EQ(seen.queued_ns, snapshot_.queued_ns);
  EXPECT_EQ(seen.return_hysteresis_ns, snapshot_.return_hysteresis_ns);
  EXPECT_EQ(seen.be_paused_until_ns, snapshot_.be_paused_until_ns);
  EXPECT_EQ(seen.be_pauses_at_ns, snapshot_.be_pauses_at_ns);
  EXPECT_EQ(seen.copies[2].be_active, copy.be_active);
  EXPECT_EQ(seen.copies[2].lc_active, copy.lc_active);
  EXPECT_EQ(seen.copies[2].be_limit, copy.be_limit);
  EXPECT_EQ(seen.copies_lc_uses[1], 0);
  EXPECT_EQ(seen.copies_lc_uses[2], 1);
  EXPECT_EQ(seen.places[0].sms, place_.sms);
  EXPECT_EQ(seen.places[0].overlaps, place_.overlaps);
  EXPECT_EQ(seen.splits[0].lc_place, split_.lc_place);
  EXPECT_EQ(seen.splits[0].be_place, split_.be_place);
  EXPECT_EQ(seen.splits[0].lc_sms, split_.lc_sms);
  EXPECT_EQ(seen.splits[0].be_sms, split_.be_sms);
}

TEST_F(PolicyViewsTest, TheArrangementInForceShows) {
  snapshot_.in_force = {3, 2, core::SegmentsRun::kOnSplit};
  snapshot_.trials_open = true;
  snapshot_.queries_left_out = true;
  const gpushare_snapshot& seen = Convert();
  EXPECT_EQ(seen.in_force.split, 3);
  EXPECT_EQ(seen.in_force.trial_kernel, 2);
  EXPECT_EQ(seen.in_force.segments, GPUSHARE_SEGMENTS_ON_SPLIT);
  EXPECT_EQ(seen.trials_open, 1);
  EXPECT_EQ(seen.queries_left_out, 1);
}

TEST_F(PolicyViewsTest, APairShowsWhatATrialMayFind) {
  const core::PairOption options[] = {{0.1F, 0.2F, 0.3F, 0.4F}, {0.5F, 0.6F, 0.7F, 0.8F}};
  const float hoped[] = {0, 0.55F};
  snapshot_.pairs = {options, hoped, 2, 1, 7};
  const gpushare_snapshot& seen = Convert();
  EXPECT_EQ(seen.pair_version, 7u);
  EXPECT_EQ(gpushare_pair_at(&seen, 0, 1, 0)->lc_speed, 0.5F);
  EXPECT_EQ(gpushare_hoped_at(&seen, 0, 0, 0), 0.0F);
  EXPECT_EQ(gpushare_hoped_at(&seen, 0, 1, 0), 0.55F);
  EXPECT_EQ(gpushare_hoped_at(&seen, 0, 2, 0), 0.0F);
  snapshot_.pairs.hoped = {};
  EXPECT_EQ(gpushare_hoped_at(&Convert(), 0, 1, 0), 0.0F);
}

}  // namespace
}  // namespace gpushare::abi
