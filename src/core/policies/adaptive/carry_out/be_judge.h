// Whether a BE task may be launched on an open place now, and if not, why.
//
// On a place that LC work uses, the shift by what a query would wait for must be allowed (shift.h),
// or credit must cover it, unless LC work waits for the task (HeadView::awaited_by_lc). Its quota
// must leave room. One live task fills a place, or two that share SMs (be_pairs.h); one more may
// queue behind it. The SMs have room for the workers of both, so their evictions together must fit
// too. A graph in segments has no task beside or behind it: what is outstanding of both would block
// a query. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_JUDGE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_JUDGE_H_

#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/carry_out/open_places.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"
#include "src/core/seams/width.h"

namespace gpushare::core {

// The order of the fields keeps the compiler from copying two of them at once. A wide copy of what
// was just written in parts waits for these writes, at each head of each plan.
struct Judgement {
  Judgement() = default;
  Judgement(Reason held_for, int64_t value, int64_t limit)
      : value_ns(value), reason(held_for), limit_ns(limit) {}

  int64_t value_ns = 0;
  Reason reason = Reason::kNone;  // kNone: it may be launched
  bool on_credit = false;         // of the tail accounts
  int64_t limit_ns = 0;
};

class BeJudge {
 public:
  // `forced`: evictable tasks are launched without a check of their blocking time.
  BeJudge(const Snapshot& snapshot, const Arrangement& arrangement, const LcActivity& lc,
          bool forced, const OpenPlaces& places, const FairShare& shares, Shifts& shifts)
      : snapshot_(snapshot),
        arrangement_(arrangement),
        lc_(lc),
        forced_(forced),
        places_(places),
        shares_(shares),
        shift_(snapshot, shifts) {}

  const Shift& shift() const { return shift_; }
  // Whether a task of this kind may ever use the place. A kernel that the arrangement excludes from
  // both sides is judged, and held, on the BE side.
  bool MayUse(const HeadView& task, const BePlace& place) const;
  // How many workers a launch of the task on the place has: fewer where LC work would wait for all
  // of them too long, and no quota bounds them.
  Width WidthOn(const HeadView& task, const BePlace& place) const;
  // By its blocking time alone, with these workers, or with the task's own eviction latency.
  Judgement JudgeBlocking(const HeadView& task, const BePlace& place) const {
    return JudgeBlocking(task, place, WidthOn(task, place));
  }
  Judgement JudgeBlocking(const HeadView& task, const BePlace& place, const Width& width) const;
  // And by the room on the place, as if nothing had to run alone.
  Judgement JudgeRoom(const HeadView& task, const BePlace& place) const;
  // Whether the task, or what shares SMs with the place, runs alone, or both would take too long to
  // leave. The last segments of an evicted graph would wait behind the task as long as it runs.
  bool MustWaitAlone(const HeadView& task, const BePlace& place) const;
  // By the eviction of the task together with those that share its SMs. On credit one task runs at
  // a time: a second one would only hide a launch latency.
  Judgement JudgeTogether(const HeadView& task, const BePlace& place) const;
  // By all of these.
  Judgement Judge(const HeadView& task, const BePlace& place) const;
  bool MayLaunch(const HeadView& task, const BePlace& place) const;
  // Whether both heads are judged alike on each place.
  bool AreAlike(const HeadView& a, const HeadView& b) const;

 private:
  bool IsAlone(const HeadView& task, const BePlace& place) const;
  bool IsMeasured(const HeadView& task) const;
  Sides SidesOf(const HeadView& task) const;
  bool MayUseUnconfined(const HeadView& task) const;
  Judgement JudgeBesideLc(const HeadView& task, const BePlace& place) const;
  Judgement JudgeCredit(Delay delay) const;
  // `value_ns` and `limit_ns`: what holds it where no account knows of it.
  Judgement JudgeCredit(int64_t blocking_ns, int64_t value_ns, int64_t limit_ns) const;
  Judgement HoldForGap() const;
  Judgement HoldForQuota(const HeadView& task) const;
  bool SharesQueue(const HeadView& task, const BePlace& place) const;
  bool LeavesPlace(const HeadView& task, const BePlace& place) const;

  const Snapshot& snapshot_;
  const Arrangement& arrangement_;
  const LcActivity& lc_;
  const bool forced_;
  const OpenPlaces& places_;
  const FairShare& shares_;
  const Shift shift_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_JUDGE_H_
