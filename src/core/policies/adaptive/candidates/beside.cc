// Which BE grids run beside queries, and whether that pays (candidates/beside.h).

#include "src/core/policies/adaptive/candidates/beside.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/promise/tuning.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

// Without splits nobody asked for the value of the whole device alone.
double WholeValueOf(const Snapshot& snapshot, const Arrangement& known, double load) {
  return snapshot.splits.empty() ? 1 - load : known.whole_value;
}

// How long workers have run. A grid waits for LC's blocks, and was judged when it was launched.
int64_t WorkersRanFor(const Snapshot& snapshot, const RunningView& running) {
  TimeNs since_ns = snapshot.now_ns;
  for (const PartView& part : running.parts) {
    if (HasWorkers(part.form)) since_ns = std::min(since_ns, part.launched_ns);
  }
  return snapshot.now_ns - since_ns;
}

}  // namespace

BesideQueries::BesideQueries(const Snapshot& snapshot, const Arrangement& arrangement, bool allowed)
    : snapshot_(snapshot) {
  terms_.budget_ns = std::min(MaxQueuedTime(snapshot), MinBlockingBudget(snapshot));
  if (!allowed || !ReadLc() || !ReadBe()) return;
  terms_.reserve_ns = ReserveNs();
  if (!AllFit() || BeQuotas(snapshot, kNoSplit).any()) return;
  compares_ = true;
  const double value = WholeValueOf(snapshot, arrangement, load_) + load_ * gain_;
  const double known = AsMeasured(arrangement.value, arrangement.split == FavouredSplit(snapshot));
  const bool on_trial = arrangement.trial_kernel >= 0;
  split_value_ = on_trial ? AsMeasured(arrangement.trial_value, false) : known;
  if (on_trial && !IsBetterThanTrial(arrangement, value)) return;
  const double bonus = snapshot.in_force.split == kNoSplit ? kLayoutHysteresis : 0;
  applies_ = arrangement.split == kNoSplit || value + bonus > known;
  if (applies_) value_ = value;
}

// The value of a split that was predicted to be worth this, by what segments gained on splits.
double BesideQueries::AsMeasured(double predicted, bool in_force) const {
  const double bonus = in_force ? kLayoutHysteresis : 0;
  const double measured = 1 - load_ + load_ * split_gain_;
  return predicted + split_known_ * (measured - (predicted - bonus));
}

SegmentsRun BesideQueries::SegmentsRunOn(const Arrangement& arrangement) const {
  if (!compares_ || !terms_.any_segments) return SegmentsRun::kNone;
  if (applies_) return SegmentsRun::kBesideQueries;
  return arrangement.split == kNoSplit ? SegmentsRun::kNone : SegmentsRun::kOnSplit;
}

// Segments, whose gain is measured, keep a split from being tried that may only be worse. A trial
// that has begun goes on near a tie.
bool BesideQueries::IsBetterThanTrial(const Arrangement& arrangement, double value) const {
  const bool begun = snapshot_.in_force.TriedSplit() == arrangement.split;
  return terms_.any_segments && value > split_value_ + (begun ? kLayoutHysteresis : 0);
}

// Whether every LC app that sends queries has a target alone, and the load is worth it.
bool BesideQueries::ReadLc() {
  for (const LcAppView& app : snapshot_.lc_apps) {
    if (HasNeverSent(app)) continue;
    if (!app.promise.HasOnlyATarget() || TargetIsLost(app)) return false;
    load_ += app.load;
  }
  load_ = std::min(load_, kLoadMax);
  return load_ >= kGridLoadMin;
}

// What runs counts too: while a queue's task runs, the next one is no head, and the arrangement
// must not change for that.
bool BesideQueries::ReadBe() {
  int32_t tasks = 0;
  const auto read = [&](const HeadView& task) {
    if (!IsBeCompute(task)) return;
    const bool segments = RunsInSegments(snapshot_, task);
    (segments ? terms_.any_segments : terms_.any_grids) = true;
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
int64_t BesideQueries::ReserveNs() const {
  int64_t reserve_ns = 0;
  for (const LcAppView& app : snapshot_.lc_apps) {
    if (HasNeverSent(app)) continue;
    const double late = terms_.any_grids ? std::max(1.0, app.target_tail) : app.target_tail - 1;
    const double share = kGridReserve * std::max(0.0, late);
    reserve_ns = std::max(reserve_ns,
                          static_cast<int64_t>(share * static_cast<double>(app.promise.target_ns)));
  }
  return reserve_ns;
}

// Whether all BE work may run so.
bool BesideQueries::AllFit() {
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
// arrangement would change under them.
bool BesideQueries::Fits(const HeadView& task, int64_t ran_ns) {
  const bool segments = RunsInSegments(snapshot_, task);
  if (!segments && task.kind != TaskKind::kKernel && task.kind != TaskKind::kLibrary) return false;
  const int64_t blocks_ns = segments ? LeavesWithin(snapshot_, task, kWholeDevice)
                                     : SumNs(ran_ns, RemainingOn(snapshot_, task, kWholeDevice));
  longest_ns_ = std::max(longest_ns_, blocks_ns);
  return blocks_ns <= MostNs();
}

}  // namespace gpushare::core
