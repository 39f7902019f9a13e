// Which BE grids run beside queries, and whether that pays (be_grids.h).

#include "src/core/policies/adaptive/be_grids.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// How long workers have run. A grid waits for LC's blocks, and was judged when it was launched.
int64_t WorkersRanFor(const Snapshot& snapshot, const RunningView& running) {
  TimeNs since_ns = snapshot.now_ns;
  for (const PartView& part : running.parts) {
    if (HasWorkers(part.form)) since_ns = std::min(since_ns, part.launched_ns);
  }
  return snapshot.now_ns - since_ns;
}

}  // namespace

BeGrids::BeGrids(const Snapshot& snapshot, const Layout& layout, int32_t current, bool allowed)
    : snapshot_(snapshot),
      budget_ns_(std::min(MaxQueuedTime(snapshot), MinBlockingBudget(snapshot))) {
  if (!allowed || !ReadLc() || !ReadBe()) return;
  reserve_ns_ = ReserveNs();
  if (!AllFit() || BeQuotas(snapshot, kWholeLayout).any()) return;
  compares_ = true;
  const double value = SharedWholeValue(snapshot, layout, load_, gain_);
  const double known = AsMeasured(layout.value, layout.split == current);
  const bool on_trial = layout.trial_kernel >= 0;
  split_value_ = on_trial ? AsMeasured(layout.trial_value, false) : known;
  if (on_trial && !IsBetterThanTrial(layout, value)) return;
  applies_ = IsBestShared(layout, known, IsWholeInForce(current), value);
  if (applies_) value_ = value;
}

// Under a split segments have the whole device while no query is active, and are still leaving it
// when one has come. So their place does not show that the split is in force.
bool BeGrids::IsWholeInForce(int32_t current) const {
  return current == kWholeLayout && snapshot_.segments_ran != SegmentsRun::kOnSplit;
}

// The value of a split that was predicted to be worth this, by what segments gained on splits.
double BeGrids::AsMeasured(double predicted, bool in_force) const {
  const double bonus = in_force ? kLayoutHysteresis : 0;
  const double measured = 1 - load_ + load_ * split_gain_;
  return predicted + split_known_ * (measured - (predicted - bonus));
}

SegmentsRun BeGrids::SegmentsRunOn(const Layout& layout) const {
  if (!compares_ || !any_segments_) return SegmentsRun::kNone;
  if (applies_) return SegmentsRun::kBesideQueries;
  return layout.split == kWholeLayout ? SegmentsRun::kNone : SegmentsRun::kOnSplit;
}

// Segments, whose gain is measured, keep a split from being tried that may only be worse. A trial
// that has begun goes on near a tie.
bool BeGrids::IsBetterThanTrial(const Layout& layout, double value) const {
  const bool begun = snapshot_.trial.split == layout.split;
  return any_segments_ && value > split_value_ + (begun ? kLayoutHysteresis : 0);
}

// Whether every LC app that sends queries has a target alone, and the load is worth it.
bool BeGrids::ReadLc() {
  for (const LcAppView& app : snapshot_.lc_apps) {
    if (HasNeverSent(app)) continue;
    if (!app.promise.HasOnlyATarget() || TargetIsLost(app)) return false;
    load_ += app.load;
  }
  load_ = std::min(load_, kLoadMax);
  return load_ >= kGridLoadMin;
}

// What runs counts too: while a queue's task runs, the next one is no head, and the layout must not
// change for that.
bool BeGrids::ReadBe() {
  int32_t tasks = 0;
  const auto read = [&](const HeadView& task) {
    if (!IsBeCompute(task)) return;
    const bool segments = RunsInSegments(snapshot_, task);
    (segments ? any_segments_ : any_grids_) = true;
    gain_ += segments ? task.segment_gain : kGridGain;
    split_gain_ += task.split_gain_known * task.split_gain;
    split_known_ += task.split_gain_known;
    ++tasks;
  };
  for (const HeadView& head : snapshot_.heads) read(head);
  for (const RunningView& running : snapshot_.running) read(running.task);
  if (tasks == 0) return false;
  gain_ /= tasks;
  if (split_known_ > 0) split_gain_ /= split_known_;
  split_known_ /= tasks;
  return true;
}

// The more queries are late, the more stays unused. Segments leave when a headroom is spent, so
// that nothing need stay before more are late than a p99 allows.
int64_t BeGrids::ReserveNs() const {
  int64_t reserve_ns = 0;
  for (const LcAppView& app : snapshot_.lc_apps) {
    if (HasNeverSent(app)) continue;
    const double late = any_grids_ ? std::max(1.0, app.target_tail) : app.target_tail - 1;
    const double share = kGridReserve * std::max(0.0, late);
    reserve_ns = std::max(reserve_ns,
                          static_cast<int64_t>(share * static_cast<double>(app.promise.target_ns)));
  }
  return reserve_ns;
}

// Whether all BE work may run so.
bool BeGrids::AllFit() const {
  const auto fits = [&](const HeadView& task, int64_t ran_ns) {
    return !IsBeCompute(task) || Fits(task, ran_ns);
  };
  return std::all_of(snapshot_.heads.begin(), snapshot_.heads.end(),
                     [&](const HeadView& head) { return fits(head, 0); }) &&
         std::all_of(snapshot_.running.begin(), snapshot_.running.end(),
                     [&](const RunningView& running) {
                       return fits(running.task, WorkersRanFor(snapshot_, running));
                     });
}

// Whether it is short enough, or its eviction is. Long workers do not become short by running: the
// layout would change under them.
bool BeGrids::Fits(const HeadView& task, int64_t ran_ns) const {
  const bool segments = RunsInSegments(snapshot_, task);
  if (!segments && task.kind != TaskKind::kKernel && task.kind != TaskKind::kLibrary) return false;
  const int64_t blocks_ns = segments ? LeavesWithin(snapshot_, task, kWholeDevice)
                                     : SumNs(ran_ns, RemainingOn(snapshot_, task, kWholeDevice));
  return blocks_ns <= budget_ns_ - reserve_ns_;
}

void BeGrids::EvictForLc(Plan& plan) const {
  if (!snapshot_.eviction_available) return;
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task) || RunsInSegments(snapshot_, running.task)) continue;
    EvictTaskParts(running, ~uint64_t{0}, Reason::kEvictForLc, plan);
  }
}

void BeGrids::PlanHeads(const LcActivity& lc, int64_t lc_ahead_ns, Plan& plan) const {
  HeadroomLedger ledger(snapshot_, LeftNs(MinHeadroom(snapshot_), reserve_ns_), lc_ahead_ns,
                        any_grids_ ? budget_ns_ : MaxQueuedTime(snapshot_));
  int32_t live = 0;
  for (const RunningView& running : snapshot_.running) live += IsBeCompute(running.task) ? 1 : 0;
  BeOrder order;
  ledger.shares().Order(order);
  for (const HeadView* head : order) {
    if (IsBeCompute(*head)) PlanHead(*head, lc, live, ledger, plan);
  }
  PlanRunningSegments(snapshot_, ledger, plan);
}

void BeGrids::PlanHead(const HeadView& head, const LcActivity& lc, int32_t& live,
                       HeadroomLedger& ledger, Plan& plan) const {
  if (live >= kGridsMost) {
    plan.holds.TryAdd({head.task, Reason::kHoldWindow, live, kGridsMost});
    return;
  }
  const bool workers = head.kind == TaskKind::kKernel && CanBeEvicted(snapshot_, head);
  if (head.resumed && workers) return PlanRest(head, lc, live, ledger, plan);
  const int before = plan.launches.size();
  PlanBeCompute(snapshot_, head, ledger, plan);
  live += plan.launches.size() - before;
}

void BeGrids::PlanRest(const HeadView& head, const LcActivity& lc, int32_t& live,
                       HeadroomLedger& ledger, Plan& plan) const {
  if (lc.active) {
    plan.holds.TryAdd({head.task, Reason::kHoldLcActive, 0, 0});
  } else if (snapshot_.now_ns < lc.open_at_ns) {
    plan.holds.TryAdd({head.task, Reason::kHoldHysteresis, snapshot_.now_ns, lc.open_at_ns});
    plan.replan_at_ns = std::min(plan.replan_at_ns, lc.open_at_ns);
  } else if (plan.launches.TryAdd(MakeLaunch(head.task, Form::kWorkers, kWholeDevice,
                                             LaneClass::kBe, Reason::kResume))) {
    ++live;
    ledger.Debit(head);
  }
}

}  // namespace gpushare::core
