// Who has the whole device under a split.
//
// Work that no partition holds needs both sides to be empty, and runs alone. When it is next by
// weight nobody else is launched on the sides, and tasks whose apps had more leave them. A graph in
// segments that a side would take moves to the whole device while no query is active, and its
// eviction returns it to the BE side. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_WHOLE_TURN_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_WHOLE_TURN_H_

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/adaptive/carry_out/be_judge.h"
#include "src/core/policies/adaptive/carry_out/open_places.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class WholeTurn {
 public:
  WholeTurn(const Snapshot& snapshot, const OpenPlaces& places, const BeJudge& judge,
            const FairShare& shares);

  // Whether the task leaves the side to work that needs both. While a query is active, such work
  // cannot start: then one task after another has the BE side, and none queues behind it.
  bool LeavesSides(const HeadView& task, const BePlace& place) const;
  // Whether a running task leaves the sides to it.
  bool Displaces(const HeadView& running) const;
  // Whether a graph in segments that a side would take runs on the whole device instead.
  bool PrefersWhole(const HeadView& task) const;
  // Evicts what the next turn displaces. Long tasks on other places would outlast the time until
  // the next query.
  void EvictForNext(Plan& plan) const;
  // Evicts a graph in segments from the BE side once the whole device is open: its rest is a head
  // when it has left, and takes the whole. Other BE work would take the side before.
  void ReturnSegments(Plan& plan) const;

 private:
  bool NeedsAll(const HeadView& task) const;
  void FindNext();

  const Snapshot& snapshot_;
  const OpenPlaces& places_;
  const BeJudge& judge_;
  const FairShare& shares_;
  // The next task that needs the whole device for itself and may start when no query is active: a
  // graph in segments that no partition holds, or unbounded work (be_quota.h). Null: none.
  const HeadView* next_ = nullptr;
};

// Whether the rest of the task is not worth a launch of its own.
inline bool IsShort(const HeadView& task) { return task.remaining.duration_ns < kElasticPartNsMin; }

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_WHOLE_TURN_H_
