// How long segments of BE graphs may be (segment_length.h).

#include "src/core/policies/adaptive/carry_out/segment_length.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/graph_cut.h"
#include "src/core/seams/segment_lengths.h"

namespace gpushare::core {
namespace {

// How much longer the segments of a graph may be than they were asked for. Where its nodes were not
// measured, a segment's length is a mean, and what its eviction takes says how long others are.
double StretchOf(const HeadView& task) {
  if (task.kernel == nullptr || task.kernel->known_blocking() != nullptr) return 1;
  const auto asked_ns = static_cast<double>(kSegmentsOutstanding * SegmentNsOf(*task.kernel));
  return std::max(1.0, static_cast<double>(task.eviction_p99_ns) / asked_ns);
}

// The BE graphs in segments that are on the device or may be launched.
struct Graphs {
  int64_t segment_ns = kNever;  // the shortest of their own lengths
  double stretch = 1;           // the largest

  void Add(const HeadView& task) {
    stretch = std::max(stretch, StretchOf(task));
    if (task.kernel != nullptr) segment_ns = std::min(segment_ns, SegmentNsOf(*task.kernel));
  }
};

// False where other BE work runs, or several graphs do: their waits would add up.
bool OnlyOneRuns(const Snapshot& snapshot, Graphs& graphs) {
  if (!snapshot.eviction_available || snapshot.running.size() > 1) return false;
  for (const RunningView& running : snapshot.running) {
    if (!RunsInSegments(snapshot, running.task)) return false;
    graphs.Add(running.task);
  }
  for (const HeadView& head : snapshot.heads) {
    if (IsBeCompute(head) && RunsInSegments(snapshot, head)) graphs.Add(head);
  }
  return true;
}

bool LaunchesOtherWork(const Plan& plan) {
  return std::any_of(plan.launches.begin(), plan.launches.end(),
                     [](const PlannedLaunch& launch) { return launch.form != Form::kSegments; });
}

// An app that works in steps has none left: the next one begins a busy period, and waits once.
bool IsBetweenBusyPeriods(const LcAppView& app, TimeNs now_ns) {
  return app.first_late_max > 0 && app.expected_by_ns <= now_ns;
}

// Whether short segments are needed whatever the budgets are. Each step would wait for what runs in
// the gap before it, whether the app has a load or has just begun. An app that has had no query yet
// limits nothing (IsSilent), unless it states nothing.
bool NeedsShort(const LcAppView& app, TimeNs now_ns) {
  if (app.promise.StatesNothing() || app.expected_by_ns > now_ns) return true;
  return HasLoad(app) && !IsBetweenBusyPeriods(app, now_ns);
}

// The whole graph where a query that comes waits for it no longer than for two of the longest
// groups. What a graph takes is what its segments may, or the prediction where that is longer.
int64_t LongestWithoutLc(const Snapshot& snapshot) {
  const int64_t longest_ns = kGroupLengthsNs.back();
  const auto is_long = [&](const HeadView& task) {
    if (!IsBeCompute(task) || !RunsInSegments(snapshot, task)) return false;
    const int64_t cut_ns =
        task.kernel == nullptr ? 0 : task.kernel->segments() * SegmentNsOf(*task.kernel);
    return std::max(cut_ns, task.remaining.duration_ns) > kSegmentsOutstanding * longest_ns;
  };
  const bool any = std::any_of(snapshot.heads.begin(), snapshot.heads.end(), is_long) ||
                   std::any_of(snapshot.running.begin(), snapshot.running.end(),
                               [&](const RunningView& view) { return is_long(view.task); });
  return any ? longest_ns : kNever;
}

// When a gap between two steps may have become a silence.
TimeNs GapEndsNs(const Snapshot& snapshot) {
  TimeNs ends_ns = kNever;
  for (const LcAppView& app : snapshot.lc_apps) {
    if (app.expected_by_ns > snapshot.now_ns) ends_ns = std::min(ends_ns, app.expected_by_ns);
  }
  return ends_ns;
}

bool MayEndSilences(const LcAppView& app) { return HasLoad(app) || app.first_late_max > 0; }

// Whether a query may wait for two segments that may take so long: within each budget, or, where
// those that have a load work in steps, if this silence is one of the share that may end with that
// wait. An engine that rests is in a silence too. Beyond the shortest length a graph gains next to
// nothing by it, and the first token of a busy period pays for it.
bool MayWait(const Snapshot& snapshot, int64_t length_ns, int64_t longest_ns, Shifts& shifts) {
  if (kSegmentsOutstanding * longest_ns <= MinBlockingBudget(snapshot)) return true;
  if (length_ns > kLongerSegmentsNs.front()) return false;
  if (std::none_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), MayEndSilences)) return false;
  // The rest of the first is uniform, and nothing evicts the second.
  const Shift shift(snapshot, shifts);
  return shift.AllowsNow({.eviction_ns = longest_ns, .uncuttable_ns = longest_ns});
}

}  // namespace

void PlanSegmentLength(const Snapshot& snapshot, const LcActivity& lc, Shifts& shifts, Plan& plan) {
  if (snapshot.lc_apps.empty()) {
    plan.longest_segment_ns = LongestWithoutLc(snapshot);
    return;
  }
  Graphs graphs;
  if (lc.active || LaunchesOtherWork(plan) || !OnlyOneRuns(snapshot, graphs)) return;
  plan.replan_at_ns = std::min(plan.replan_at_ns, GapEndsNs(snapshot));
  const auto needs_short = [&](const LcAppView& app) { return NeedsShort(app, snapshot.now_ns); };
  if (std::any_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), needs_short)) return;
  for (const int64_t length_ns : kGroupLengthsNs) {
    const auto longest_ns = static_cast<int64_t>(graphs.stretch * static_cast<double>(length_ns));
    if (length_ns <= graphs.segment_ns) continue;
    if (!MayWait(snapshot, length_ns, longest_ns, shifts)) continue;
    plan.longest_segment_ns = length_ns;
  }
}

}  // namespace gpushare::core
