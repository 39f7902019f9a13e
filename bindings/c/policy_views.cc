// Copies of the core's views as C views. See policy_views.h.

#include "bindings/c/policy_views.h"

#include <algorithm>
#include <cstddef>

#include "bindings/c/convert.h"
#include "bindings/c/field_count.h"

namespace gpushare::abi {
namespace {

// A user's policy sees every field of these structs but for
// - LcAppView::pieces, which say where a graph may be cut: a route of a user's policy never asks
//   for it (user_policy.cc); and ::main_kernel_ns and ArrangementInForce::fused, which only a
//   policy needs that weighs fused partners as adaptive does;
// - QueryView::serial_headroom_ns, which is kept for a policy that asks for it;
// - HeadView::kernel, of which the head's view has the identifier and what a plan needs, and
//   ::block_ns and ::whole_ns, which kernelet and adaptive's fused partners alone read;
// - PlaceView::ready, because the library sends work elsewhere until a place that it names is made;
// - CoScheduleTable::rows, because heads name their rows, and ::sliced, which kernelet alone reads.
// Whoever adds a field gives it to gpushare_policy.h, at the end of its struct, converts it below,
// and counts it here; docs/write-a-policy.md names it.
GPUSHARE_ALL_FIELDS_CONVERTED(core::PlaceView, 3);
GPUSHARE_ALL_FIELDS_CONVERTED(core::SplitView, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::CopyState, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::Promise, 5);
GPUSHARE_ALL_FIELDS_CONVERTED(core::LcAppView, 30);
GPUSHARE_ALL_FIELDS_CONVERTED(core::BeAppView, 8);
GPUSHARE_ALL_FIELDS_CONVERTED(core::QueryView, 9);
GPUSHARE_ALL_FIELDS_CONVERTED(core::Prediction, 3);
GPUSHARE_ALL_FIELDS_CONVERTED(core::HeadView, 30);
GPUSHARE_ALL_FIELDS_CONVERTED(core::PartView, 6);
GPUSHARE_ALL_FIELDS_CONVERTED(core::RunningView, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::PairOption, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::PairTable, 5);
GPUSHARE_ALL_FIELDS_CONVERTED(core::FusedView, 2);
GPUSHARE_ALL_FIELDS_CONVERTED(core::FusedCurveView, 6);
GPUSHARE_ALL_FIELDS_CONVERTED(core::CoScheduleOption, 4);
GPUSHARE_ALL_FIELDS_CONVERTED(core::CoScheduleTable, 5);
GPUSHARE_ALL_FIELDS_CONVERTED(core::ArrangementInForce, 4);
// All but `partitions`: only the policy `partitioned` carries a plan of partitions out; and
// `eviction_write_ns` and `cut_node_ns`, which only planners of fewer workers and of cut graphs
// need.
GPUSHARE_ALL_FIELDS_CONVERTED(core::Snapshot, 29);

static_assert(GPUSHARE_PARTS_MAX == core::kMaxPartsPerTask);
static_assert(static_cast<int>(core::SegmentsRun::kOnSplit) == GPUSHARE_SEGMENTS_ON_SPLIT);
static_assert(core::kNoSplit == -1 && core::ArrangementInForce::kNoTrial == -1);
static_assert(core::kLinkIn == 1 && core::kLinkOut == 2 && core::kLinkUses == 4);
// The pair table is not copied, because it is too large to copy for each plan.
static_assert(sizeof(core::PairOption) == sizeof(gpushare_pair_option) &&
              offsetof(core::PairOption, lc_speed_alone) ==
                  offsetof(gpushare_pair_option, lc_speed_alone) &&
              offsetof(core::PairOption, be_speed_be_side) ==
                  offsetof(gpushare_pair_option, be_speed_be_side) &&
              offsetof(core::PairOption, be_speed_lc_side) ==
                  offsetof(gpushare_pair_option, be_speed_lc_side));

// Nor are the co-schedules.
static_assert(GPUSHARE_CO_SCHEDULE_RATIOS == core::kCoScheduleRatios);
static_assert(sizeof(core::CoScheduleOption) == sizeof(gpushare_co_schedule_option) &&
              offsetof(core::CoScheduleOption, speed) ==
                  offsetof(gpushare_co_schedule_option, speed) &&
              offsetof(core::CoScheduleOption, speed_error) ==
                  offsetof(gpushare_co_schedule_option, speed_error) &&
              offsetof(core::CoScheduleOption, profit) ==
                  offsetof(gpushare_co_schedule_option, profit));

constexpr double kAttainedNsMax = 9e18;  // below 2^63

gpushare_bool Bool(bool value) { return value ? 1 : 0; }

// What a plan may spend of the promise is computed here: a policy outside has no Promise to ask.
void ViewPromise(const core::LcAppView& app, gpushare_lc_app_view& out) {
  const core::PlannedPromise planned = app.promise.Planned(app.solo_ns, app.target_tail);
  out.p50_bound = app.promise.p50_bound;
  out.latency_limit_ns = app.promise.LatencyLimit();
  out.p99_slack_ns = app.promise.Slack(app.solo_ns);
  out.p50_slack_ns = app.promise.MedianSlack(app.solo_ns);
  out.split_p99_bound = planned.p99_bound;
  out.split_target_ns = planned.target_ns;
}

gpushare_lc_app_view View(const core::LcAppView& app) {
  gpushare_lc_app_view out = {};
  out.app_id = app.app.value;
  out.reserved_capsms = app.reserved_capsms;
  out.target_ns = app.promise.target_ns;
  out.p99_bound = app.promise.p99_bound;
  out.p99_alone_ns = app.promise.p99_alone_ns;
  out.solo_ns = app.solo_ns;
  out.load = app.load;
  out.blocking_budget_ns = app.blocking_budget_ns;
  out.active_queries = app.active_queries;
  out.tasks_in_flight = app.tasks_in_flight;
  out.idle_since_ns = app.idle_since_ns;
  out.main_kernel_id = app.main_kernel.value;
  ViewPromise(app, out);
  out.load_error = app.load_error;
  out.peak_load = app.peak_load;
  out.target_tail = app.target_tail;
  out.uncuttable_budget_ns = std::max(app.blocking_budget_ns, app.uncuttable_budget_ns);
  out.tail_rate_per_ns = app.tail_rate;
  out.late_delay_ns = app.late_delay_ns;
  out.tail_credit = app.tail_credit;
  out.tail_need_per_ns = app.tail_need_per_ns;
  out.lag_ns = app.lag_ns;
  out.shadow_p99_ns = app.shadow_p99_ns;
  out.service_age_ns = app.service_age_ns;
  out.lag_slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
  std::copy(app.speed_beside_copies.begin(), app.speed_beside_copies.end(),
            out.speed_beside_copies);
  out.packed = Bool(app.packed);
  out.priority = app.priority;
  out.lull_delay_ns = app.lull_delay_ns;
  out.expected_by_ns = app.expected_by_ns;
  out.first_late_max = app.first_late_max;
  out.saved_vacation_ns = app.saved_vacation_ns;
  return out;
}

gpushare_be_app_view View(const core::BeAppView& app) {
  gpushare_be_app_view out = {};
  out.app_id = app.app.value;
  out.quota_capsms = app.quota_capsms;
  out.weight = app.weight;
  const auto attained_ns = [&app](size_t resource) {
    return static_cast<int64_t>(std::min(app.attained_ns[resource], kAttainedNsMax));
  };
  out.attained_ns = attained_ns(core::kSmTime);
  out.used_capsms = app.used_capsms;
  out.packed = Bool(app.packed);
  out.fair_weight = app.fair_weight;
  out.served_ns = app.served_ns[core::kSmTime];
  for (size_t direction = 1; direction < core::kSharedResources; ++direction) {
    out.copies_attained_ns[direction] = attained_ns(direction);
    out.copies_served_ns[direction] = app.served_ns[direction];
  }
  return out;
}

gpushare_query_view View(const core::QueryView& query) {
  gpushare_query_view out = {};
  out.query.value = query.query.value;
  out.lc_app = query.lc_app;
  out.arrival_ns = query.arrival_ns;
  out.deadline_ns = query.deadline_ns;
  out.solo_ns = query.solo_ns;
  out.issued_ns = query.issued_ns;
  out.done_ns = query.done_ns;
  out.headroom_ns = query.headroom_ns;
  return out;
}

gpushare_head_view View(const core::HeadView& head) {
  gpushare_head_view out = {};
  out.task.value = head.task.value;
  out.app_class = ToC(head.app_class);
  out.app = head.app;
  out.queue_id = head.queue.value;
  out.kind = ToC(head.kind);
  out.query.value = head.query.value;
  out.kernel_id = head.kernel == nullptr ? 0 : head.kernel->id.value;
  out.kernel_index = head.kernel_index;
  out.sequence = head.sequence;
  out.ready_ns = head.ready_ns;
  out.ready_count = head.ready_count;
  out.workers_per_sm_max = head.kernel == nullptr ? 0 : head.kernel->resources.workers_per_sm_max;
  out.blocks_left = head.blocks_left;
  out.resumed = Bool(head.resumed);
  out.evictable = Bool(head.evictable);
  out.confinable = Bool(head.confinable);
  out.pinned = Bool(head.pinned);
  out.direction = static_cast<int32_t>(head.direction);
  out.trained = Bool(head.remaining.trained);
  out.remaining_ns = head.remaining.duration_ns;
  out.remaining_error_ns = head.remaining.error_ns;
  out.eviction_ns = head.eviction_ns;
  out.overlap_index = head.overlap_index;
  out.eviction_p99_ns = head.eviction_p99_ns;
  out.eviction_known = Bool(head.eviction_known);
  out.runs_alone = Bool(head.runs_alone);
  out.followed = Bool(head.followed);
  out.keeps_l1 = Bool(head.kernel != nullptr && head.kernel->resources.keeps_l1);
  out.segment_gain = head.segment_gain;
  out.split_gain = head.split_gain;
  out.split_gain_known = head.split_gain_known;
  out.awaited_by_lc = Bool(head.awaited_by_lc);
  return out;
}

gpushare_fused_view View(const core::FusedView& fused) {
  gpushare_fused_view out = {};
  out.kernel_id = fused.kernel->id.value;
  out.tensor_kernel_id = fused.kernel->tensor_part.value;
  out.cuda_kernel_id = fused.kernel->cuda_part.value;
  out.tensor_blocks = fused.kernel->tensor_blocks;
  out.cuda_blocks = fused.kernel->cuda_blocks;
  out.blocks_per_sm = fused.kernel->blocks_per_sm;
  out.trained = Bool(fused.curve.trained);
  out.intercept = fused.curve.intercept;
  out.slope = fused.curve.slope;
  out.bend = fused.curve.bend;
  out.inflection = fused.curve.inflection;
  out.error = fused.curve.error;
  return out;
}

gpushare_running_view View(const core::RunningView& running) {
  gpushare_running_view out = {};
  out.task = View(running.task);
  out.task.draining = Bool(running.draining);
  out.part_count = running.parts.size();
  out.places = running.places;
  for (int i = 0; i < running.parts.size(); ++i) {
    const core::PartView& part = running.parts[i];
    gpushare_part_view& target = out.parts[i];
    target.place = part.place;
    target.lane = part.lane;
    target.workers = part.workers;
    target.evicting = Bool(part.evicting);
    target.form = static_cast<int32_t>(part.form);
    target.launched_ns = part.launched_ns;
  }
  return out;
}

gpushare_place_view View(const core::PlaceView& place) { return {place.sms, 0, place.overlaps}; }

gpushare_split_view View(const core::SplitView& split) {
  return {split.lc_place, split.be_place, split.lc_sms, split.be_sms};
}

// Converts as many elements as fit into `views`, and sets count and stride.
template <class List, size_t kCount, class To>
void Fill(const List& from, std::array<To, kCount>& views, uint32_t& count, uint32_t& stride) {
  count = static_cast<uint32_t>(std::min(from.size(), kCount));
  stride = sizeof(To);
  for (uint32_t i = 0; i < count; ++i) views[i] = View(from[i]);
}

}  // namespace

PolicyViews::PolicyViews() {
  fused_.reserve(core::kMaxKernels);
  snapshot_.struct_size = sizeof(snapshot_);
  snapshot_.places = places_.data();
  snapshot_.splits = splits_.data();
  snapshot_.lc_apps = lc_apps_.data();
  snapshot_.be_apps = be_apps_.data();
  snapshot_.queries = queries_.data();
  snapshot_.heads = heads_.data();
  snapshot_.running = running_.data();
}

const gpushare_snapshot& PolicyViews::Convert(const core::Snapshot& snapshot) {
  snapshot_.sm_count = snapshot.sm_count;
  snapshot_.now_ns = snapshot.now_ns;
  snapshot_.plan_sequence = snapshot.plan_sequence;
  snapshot_.capsms_free = snapshot.capsms_free;
  snapshot_.queued_ns = snapshot.queued_ns;
  snapshot_.quiesced = Bool(snapshot.quiesced);
  snapshot_.return_hysteresis_ns = snapshot.return_hysteresis_ns;
  snapshot_.be_paused_until_ns = snapshot.be_paused_until_ns;
  snapshot_.be_pauses_at_ns = snapshot.be_pauses_at_ns;
  snapshot_.in_force = {snapshot.in_force.split, snapshot.in_force.trial_kernel,
                        static_cast<gpushare_segments_run>(snapshot.in_force.segments), 0};
  snapshot_.trials_open = Bool(snapshot.trials_open);
  snapshot_.queries_left_out = Bool(snapshot.queries_left_out);
  snapshot_.partitions_available = Bool(snapshot.partitions_available);
  snapshot_.eviction_available = Bool(snapshot.eviction_available);
  for (size_t i = 0; i < snapshot.copies.size(); ++i) {
    const core::CopyState& copy = snapshot.copies[i];
    snapshot_.copies[i] = {copy.be_active, copy.lc_active, copy.be_limit, 0};
    snapshot_.copies_lc_uses[i] = Bool(copy.lc_uses);
  }
  Fill(snapshot.places, places_, snapshot_.place_count, snapshot_.place_stride);
  Fill(snapshot.splits, splits_, snapshot_.split_count, snapshot_.split_stride);
  Fill(snapshot.lc_apps, lc_apps_, snapshot_.lc_app_count, snapshot_.lc_app_stride);
  Fill(snapshot.be_apps, be_apps_, snapshot_.be_app_count, snapshot_.be_app_stride);
  Fill(snapshot.queries, queries_, snapshot_.query_count, snapshot_.query_stride);
  Fill(snapshot.heads, heads_, snapshot_.head_count, snapshot_.head_stride);
  Fill(snapshot.running, running_, snapshot_.running_count, snapshot_.running_stride);
  ConvertPairs(snapshot);
  ConvertOverlap(snapshot);
  return snapshot_;
}

void PolicyViews::ConvertPairs(const core::Snapshot& snapshot) {
  // Without a table that matches the copied views, the policy sees none.
  const bool pairs = snapshot.pairs.kernels > 0 && !snapshot.pairs.options.empty() &&
                     snapshot.pairs.splits == static_cast<int32_t>(snapshot_.split_count);
  snapshot_.pairs =
      pairs ? reinterpret_cast<const gpushare_pair_option*>(snapshot.pairs.options.data())
            : nullptr;
  snapshot_.pair_kernels = pairs ? static_cast<uint32_t>(snapshot.pairs.kernels) : 0;
  snapshot_.pair_stride = sizeof(gpushare_pair_option);
  snapshot_.pair_version = snapshot.pairs.version;
  const bool hoped = pairs && snapshot.pairs.hoped.size() == snapshot.pairs.options.size();
  snapshot_.hoped = hoped ? snapshot.pairs.hoped.data() : nullptr;
}

// Fused kernels are copied when they have changed, which is rare.
void PolicyViews::ConvertOverlap(const core::Snapshot& snapshot) {
  if (snapshot_.fused_version != snapshot.fused_version) {
    fused_.clear();
    for (const core::FusedView& fused : snapshot.fused) fused_.push_back(View(fused));
    snapshot_.fused_version = snapshot.fused_version;
  }
  snapshot_.fused = fused_.data();
  snapshot_.fused_count = static_cast<uint32_t>(fused_.size());
  snapshot_.fused_stride = sizeof(gpushare_fused_view);
  const core::CoScheduleTable& table = snapshot.co_schedules;
  snapshot_.co_schedules =
      reinterpret_cast<const gpushare_co_schedule_option*>(table.options.data());
  snapshot_.co_schedule_kernels = static_cast<uint32_t>(table.kernels);
  snapshot_.co_schedule_stride = sizeof(gpushare_co_schedule_option);
  snapshot_.co_schedule_version = table.version;
}

}  // namespace gpushare::abi
