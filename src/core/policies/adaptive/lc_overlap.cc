// Who stays beside LC work, and whether that pays (lc_overlap.h).

#include "src/core/policies/adaptive/lc_overlap.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/queue_tail.h"

namespace gpushare::core {
namespace {

// Another promise than a target leaves no time for an overlap.
bool HasOnlyATarget(const LcAppView& app) {
  return app.target_ns > 0 && app.p99_bound <= 0 && app.p50_bound <= 0;
}

bool IsSilent(const LcAppView& app) { return app.main_kernel.value == 0 && !(app.load > 0); }

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

LcOverlap::LcOverlap(const Snapshot& snapshot, const Layout& layout, bool allowed)
    : snapshot_(snapshot), quotas_(snapshot, kWholeLayout) {
  if (!allowed || !snapshot.eviction_available || snapshot.co_schedules.kernels == 0) return;
  if (quotas_.any() || layout.trial_kernel >= 0) return;
  bool any_lc = false;
  for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
    const LcAppView& view = snapshot.lc_apps[app];
    if (IsSilent(view)) continue;
    if (!HasOnlyATarget(view)) return;
    rows_[app] = RowOf(snapshot, view.main_kernel);
    if (rows_[app] < 0) return;
    if (view.solo_ns <= 0) return;
    load_ += view.load;
    service_ns_ += view.load * static_cast<double>(view.solo_ns);
    any_lc = true;
  }
  if (!any_lc) return;
  load_ = std::min(load_, kLoadMax);
  service_ns_ /= std::max(load_, 1e-9);
  double gains = 0;
  int tasks = 0;
  const auto add = [&](const HeadView& task) {
    if (!IsBeCompute(task)) return;
    ++tasks;
    gains += BestBeside(task).gain;
  };
  for (const HeadView& head : snapshot.heads) add(head);
  for (const RunningView& running : snapshot.running) add(running.task);
  if (!(gains > 0)) return;
  value_ = layout.whole_value + load_ * gains / tasks;
  applies_ = layout.split == kWholeLayout || value_ > layout.value;
}

BesideLc LcOverlap::BestBeside(const HeadView& be) const {
  BesideLc best;
  if (!HasRow(snapshot_, be)) return best;
  for (size_t ratio = 0; ratio < size_t{kCoScheduleRatios}; ++ratio) {
    BesideLc beside = {.lc_speed = 1, .be_speed = 1};
    std::array<double, kMaxApps> speeds{};
    for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
      if (IsSilent(snapshot_.lc_apps[app])) continue;
      const auto options = snapshot_.co_schedules.Of(rows_[app], be.overlap_index);
      if (options.empty()) return best;
      const CoScheduleOption& option = options[ratio];
      const size_t lc_side = rows_[app] >= be.overlap_index ? 0 : 1;
      const double sure = 1 - option.speed_error;
      speeds[app] = option.speed[lc_side] * sure;
      beside.lc_speed = std::min(beside.lc_speed, speeds[app]);
      beside.be_speed = std::min(beside.be_speed, option.speed[1 - lc_side] * sure);
      beside.workers_per_sm = option.workers_per_sm[1 - lc_side];
    }
    if (!(beside.lc_speed > 0) || !(beside.be_speed > 0) || beside.workers_per_sm <= 0) continue;
    beside.gain = GainOf(beside.lc_speed, beside.be_speed);
    if (beside.gain > std::max(best.gain, kBePairGainMin) && IsStable(speeds)) best = beside;
  }
  return best;
}

// Above a load that a queue does not stand, BE would come and go with every query.
bool LcOverlap::IsStable(const std::array<double, kMaxApps>& speeds) const {
  double load = kLayoutLoadMargin;
  for (size_t app = 0; app < snapshot_.lc_apps.size(); ++app) {
    const LcAppView& view = snapshot_.lc_apps[app];
    if (!IsSilent(view)) load += view.load / speeds[app];
  }
  return load < kLayoutSideLoadMax;
}

// p99 without BE: stated, or that of the queue.
double LcOverlap::P99Alone(const LcAppView& view) const {
  if (view.p99_alone_ns > 0) return static_cast<double>(view.p99_alone_ns);
  return std::max(view.target_tail, 1.0) *
         QueueP99(static_cast<double>(view.solo_ns), service_ns_, load_);
}

bool LcOverlap::HasSlack(const HeadView& be, const BesideLc& beside) const {
  // Beside LC a block task takes longer than its share of the SMs alone explains.
  const double share =
      static_cast<double>(beside.workers_per_sm) / std::max(be.kernel->workers_per_sm_max, 1);
  const double eviction_ns =
      static_cast<double>(be.eviction_ns) * std::max(1.0, share / beside.be_speed);
  double work_ns = eviction_ns + static_cast<double>(kOverlapSlackNsMin);
  for (const QueryView& query : snapshot_.queries) {
    // What is done was done at the lower speed too.
    const double left_ns =
        static_cast<double>(query.solo_ns) / beside.lc_speed - static_cast<double>(query.done_ns);
    work_ns += std::max(0.0, left_ns);
    if (query.deadline_ns == kNever) continue;
    if (work_ns > static_cast<double>(query.deadline_ns - snapshot_.now_ns)) return false;
  }
  return std::all_of(snapshot_.lc_apps.begin(), snapshot_.lc_apps.end(), [&](const LcAppView& app) {
    return IsSilent(app) || work_ns + P99Alone(app) <= static_cast<double>(app.target_ns);
  });
}

bool LcOverlap::MayStay(const RunningView& running, BesideLc& beside) const {
  if (running.parts.size() != 1 || running.parts[0].form != Form::kWorkers) return false;
  if (running.parts[0].place != kWholeDevice || running.parts[0].evicting) return false;
  beside = BestBeside(running.task);
  return beside.workers_per_sm > 0 && HasSlack(running.task, beside);
}

void LcOverlap::EvictForLc(Plan& plan) const {
  bool taken = false;
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task)) continue;
    BesideLc beside;
    if (taken || !MayStay(running, beside)) {
      EvictTaskParts(running, ~uint64_t{0}, Reason::kEvictForLc, plan);
      continue;
    }
    taken = true;
    const int32_t keep = beside.workers_per_sm * snapshot_.sm_count;
    if (running.parts[0].workers <= keep) continue;
    plan.evictions.TryAdd({.task = running.task.task,
                           .place = kWholeDevice,
                           .workers_to_keep = keep,
                           .reason = Reason::kEvictForLc});
  }
}

const HeadView* LcOverlap::LaunchBeside(Plan& plan) const {
  const auto is_be = [](const RunningView& running) { return IsBeCompute(running.task); };
  if (std::any_of(snapshot_.running.begin(), snapshot_.running.end(), is_be)) return nullptr;
  const FairShare shares(snapshot_);
  const HeadView* best = nullptr;
  BesideLc best_beside;
  for (const HeadView& head : snapshot_.heads) {
    if (!IsBeCompute(head) || (best != nullptr && !shares.GoesBefore(head, *best))) continue;
    const BesideLc beside = BestBeside(head);
    if (beside.workers_per_sm <= 0 || !HasSlack(head, beside)) continue;
    best = &head;
    best_beside = beside;
  }
  if (best == nullptr) return nullptr;
  PlannedLaunch launch =
      MakeLaunch(best->task, Form::kWorkers, kWholeDevice, LaneClass::kBe, Reason::kCoResident);
  launch.workers = best_beside.workers_per_sm * snapshot_.sm_count;
  return plan.launches.TryAdd(launch) ? best : nullptr;
}

}  // namespace gpushare::core
