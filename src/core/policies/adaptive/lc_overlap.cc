// Who stays beside LC work, and whether that pays (lc_overlap.h).

#include "src/core/policies/adaptive/lc_overlap.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {
namespace {

int32_t RowOf(const Snapshot& snapshot, KernelId kernel) {
  const auto rows = snapshot.co_schedules.rows;
  for (size_t row = 0; row < rows.size() && kernel; ++row) {
    if (rows[row]->id == kernel) return static_cast<int32_t>(row);
  }
  return -1;
}

bool HasRow(const Snapshot& snapshot, const HeadView& task) {
  return IsBeCompute(task) && task.kind == TaskKind::kKernel && task.kernel != nullptr &&
         task.overlap_index >= 0 && CanBeEvicted(snapshot, task);
}

// Of LC's time; both speeds are of the same two kernels.
double GainOf(double lc_speed, double be_speed) { return (be_speed - (1 - lc_speed)) / lc_speed; }

}  // namespace

LcOverlap::LcOverlap(const Snapshot& snapshot, const Layout& layout, int32_t current, bool allowed)
    : snapshot_(snapshot) {
  if (!allowed || !snapshot.eviction_available || snapshot.co_schedules.kernels == 0) return;
  if (layout.trial_kernel >= 0 || !ReadLc() || BeQuotas(snapshot, kWholeLayout).any()) return;
  const double gain = MeanGain();
  if (!(gain > 0)) return;
  value_ = SharedWholeValue(snapshot, layout, load_, gain);
  applies_ = IsBestShared(layout, layout.value, current == kWholeLayout, value_);
}

// Whether every LC app that sends queries has a target alone and a main kernel with a row.
bool LcOverlap::ReadLc() {
  for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
    const LcAppView& view = snapshot_.lc_apps[app];
    if (HasNeverSent(view)) continue;
    if (!view.promise.HasOnlyATarget()) return false;
    rows_[app] = RowOf(snapshot_, view.main_kernel);
    if (rows_[app] < 0 || view.solo_ns <= 0) return false;
    load_ += view.load;
    service_ns_ += view.load * static_cast<double>(view.solo_ns);
  }
  load_ = std::min(load_, kLoadMax);
  if (load_ > 0) service_ns_ /= load_;
  return load_ > 0;
}

// Of the BE kernels that are ready or run; 0 where one of them has no row: the fast path would then
// evict too late.
double LcOverlap::MeanGain() {
  double gains = 0;
  int kernels = 0;
  bool all_have_rows = true;
  const auto add = [&](const HeadView& task) {
    if (!IsBeCompute(task)) return;
    if (!HasRow(snapshot_, task)) {
      all_have_rows = false;
      return;
    }
    const auto row = static_cast<size_t>(task.overlap_index);
    if (known_[row]) return;
    known_.set(row);
    beside_[row] = FindBeside(task);
    gains += beside_[row].gain;
    ++kernels;
  };
  for (const HeadView& head : snapshot_.heads) add(head);
  for (const RunningView& running : snapshot_.running) add(running.task);
  return all_have_rows && kernels > 0 ? gains / kernels : 0;
}

BesideLc LcOverlap::FindBeside(const HeadView& be) const {
  BesideLc best;
  for (size_t ratio = 0; ratio < size_t{kCoScheduleRatios}; ++ratio) {
    std::array<double, kMaxApps> speeds{};
    BesideLc beside = AtRatio(be, ratio, speeds);
    if (!(beside.lc_speed > 0) || !(beside.be_speed > 0) || beside.workers_per_sm <= 0) continue;
    beside.gain = GainOf(beside.lc_speed, beside.be_speed);
    if (beside.gain > std::max(best.gain, kBePairGainMin) && IsStable(speeds)) best = beside;
  }
  return best;
}

// The ratio is a share of one of the two kernels: of several LC apps all must mean as many workers.
BesideLc LcOverlap::AtRatio(const HeadView& be, size_t ratio,
                            std::array<double, kMaxApps>& speeds) const {
  BesideLc beside = {.lc_speed = 1, .be_speed = 1};
  for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
    if (HasNeverSent(snapshot_.lc_apps[app])) continue;
    const auto options = snapshot_.co_schedules.Of(rows_[app], be.overlap_index);
    if (options.empty()) return {};
    const CoScheduleOption& option = options[ratio];
    const size_t lc_side = rows_[app] >= be.overlap_index ? 0 : 1;
    const int32_t workers = option.workers_per_sm[1 - lc_side];
    if (beside.workers_per_sm != 0 && beside.workers_per_sm != workers) return {};
    beside.workers_per_sm = workers;
    const double sure = 1 - option.speed_error;
    speeds[app] = option.speed[lc_side] * sure;
    beside.lc_speed = std::min(beside.lc_speed, speeds[app]);
    beside.be_speed = std::min(beside.be_speed, option.speed[1 - lc_side] * sure);
  }
  return beside;
}

// Above a load that a queue does not stand, BE would come and go with every query.
bool LcOverlap::IsStable(const std::array<double, kMaxApps>& speeds) const {
  double load = kLayoutLoadMargin;
  for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
    const LcAppView& view = snapshot_.lc_apps[app];
    if (!HasNeverSent(view)) load += view.load / speeds[app];
  }
  return load < kLayoutSideLoadMax;
}

// p99 without BE: stated, or that of the queue.
double LcOverlap::P99Alone(const LcAppView& view) const {
  if (view.promise.p99_alone_ns > 0) return static_cast<double>(view.promise.p99_alone_ns);
  return std::max(view.target_tail, 1.0) *
         QueueP99(static_cast<double>(view.solo_ns), service_ns_, load_);
}

int64_t LcOverlap::SlackNs(const HeadView& be, const BesideLc& beside) const {
  if (beside.workers_per_sm <= 0) return -1;
  // Beside LC a block task takes longer than its share of the SMs alone explains.
  const double share =
      static_cast<double>(beside.workers_per_sm) / std::max(be.kernel->workers_per_sm_max, 1);
  double work_ns = static_cast<double>(be.eviction_ns) * std::max(1.0, share / beside.be_speed);
  auto slack_ns = static_cast<double>(kMaxDurationNs);
  for (const QueryView& query : snapshot_.queries) {
    // What is done was done at the lower speed too. A query that took longer was slowed more than
    // the table says, and nobody knows what is left of it.
    const double whole_ns = static_cast<double>(query.solo_ns) / beside.lc_speed;
    const auto done_ns = static_cast<double>(query.done_ns);
    if (done_ns > whole_ns) return -1;
    work_ns += std::max(whole_ns - done_ns, static_cast<double>(query.issued_ns) / beside.lc_speed);
    if (query.deadline_ns == kNever) continue;
    const auto left_ns = static_cast<double>(query.deadline_ns - snapshot_.now_ns);
    slack_ns = std::min(slack_ns, left_ns - work_ns);
  }
  for (const LcAppView& app : snapshot_.lc_apps) {
    if (HasNeverSent(app)) continue;
    slack_ns =
        std::min(slack_ns, static_cast<double>(app.promise.target_ns) - P99Alone(app) - work_ns);
  }
  return static_cast<int64_t>(slack_ns) - kOverlapSlackNsMin;
}

bool LcOverlap::IsWhole(const RunningView& running) {
  return running.parts.size() == 1 && running.parts[0].form == Form::kWorkers &&
         running.parts[0].place == kWholeDevice && !running.parts[0].evicting;
}

void LcOverlap::EvictForLc(Plan& plan) const {
  bool taken = false;
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task)) continue;
    const BesideLc beside = BesideOf(running.task);
    const int64_t slack_ns = taken || !IsWhole(running) ? -1 : SlackNs(running.task, beside);
    if (slack_ns < 0) {
      EvictTaskParts(running, ~uint64_t{0}, Reason::kEvictForLc, plan);
      continue;
    }
    taken = true;
    LookAgain(slack_ns, plan);
    const int32_t keep = beside.workers_per_sm * snapshot_.sm_count;
    if (running.parts[0].workers <= keep) continue;
    plan.evictions.TryAdd({.task = running.task.task,
                           .place = kWholeDevice,
                           .workers_to_keep = keep,
                           .reason = Reason::kEvictForLc});
  }
}

// A long LC kernel ends with no event until the slack is spent.
void LcOverlap::LookAgain(int64_t slack_ns, Plan& plan) const {
  plan.replan_at_ns =
      std::min(plan.replan_at_ns, snapshot_.now_ns + std::max(slack_ns, kOverlapSlackNsMin));
}

const HeadView* LcOverlap::LaunchBeside(Plan& plan) const {
  const auto is_be = [](const RunningView& running) { return IsBeCompute(running.task); };
  if (std::any_of(snapshot_.running.begin(), snapshot_.running.end(), is_be)) return nullptr;
  const FairShare shares(snapshot_);
  const HeadView* best = nullptr;
  int64_t slack_ns = 0;
  for (const HeadView& head : snapshot_.heads) {
    if (!IsBeCompute(head) || (best != nullptr && !shares.GoesBefore(head, *best))) continue;
    const int64_t its_ns = SlackNs(head, BesideOf(head));
    if (its_ns < 0) continue;
    best = &head;
    slack_ns = its_ns;
  }
  if (best == nullptr) return nullptr;
  PlannedLaunch launch =
      MakeLaunch(best->task, Form::kWorkers, kWholeDevice, LaneClass::kBe, Reason::kCoResident);
  launch.workers = BesideOf(*best).workers_per_sm * snapshot_.sm_count;
  if (!plan.launches.TryAdd(launch)) return nullptr;
  LookAgain(slack_ns, plan);
  return best;
}

}  // namespace gpushare::core
