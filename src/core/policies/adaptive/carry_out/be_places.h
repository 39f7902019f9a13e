// Filling the places that an arrangement opens with BE work.
//
// On a place where a task may be launched (be_judge.h), one that already runs on the other side
// comes first (elastic return), then the head of the BE app that is next by weight (fair_share.h).
// Two kernels share the whole device where that gains (be_pairs.h). Work that needs the whole
// device takes its turn (whole_turn.h). Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_PLACES_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_PLACES_H_

#include <bitset>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/carry_out/be_judge.h"
#include "src/core/policies/adaptive/carry_out/be_pairs.h"
#include "src/core/policies/adaptive/carry_out/open_places.h"
#include "src/core/policies/adaptive/carry_out/whole_turn.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class BePlaces {
 public:
  struct Rules {
    bool forced = false;     // evictable tasks are launched without a check of their blocking time
    bool shares_sms = true;  // where that pays (be_pairs.h)
  };
  BePlaces(const Snapshot& snapshot, const Arrangement& arrangement, const LcActivity& lc,
           Rules rules, FairShare& shares, Shifts& shifts);
  BePlaces(const BePlaces&) = delete;  // its members refer to each other
  BePlaces& operator=(const BePlaces&) = delete;

  void Fill(Plan& plan);
  // After Fill: a reason for every BE head that is not launched.
  void HoldRest(Plan& plan) const;

 private:
  Reason LaunchReason(const HeadView& task, const BePlace& place) const;
  // `workers`: 0: all that the place holds.
  bool Launch(const HeadView& task, BePlace& place, Reason reason, int32_t workers, Plan& plan);
  bool MayJoinParts(const HeadView& task, const BePlace& place) const;
  bool RunsOnOtherSide(const RunningView& running, const BePlace& place) const;
  // Launches another part of a task that runs on the other side of the split.
  bool ReturnRunning(BePlace& place, Plan& plan);
  const HeadView* NextHead(const BePlace& place) const;
  bool LaunchRecent(BePlace& place, Plan& plan);
  void LaunchHead(BePlace& place, Plan& plan);
  bool LaunchNext(const HeadView& head, BePlace& place, Reason reason, int32_t workers_per_sm,
                  Plan& plan);
  // Whether the place's only running task has a say in who comes beside it, and had it.
  bool PairRunning(BePlace& place, Plan& plan);
  bool PairWithNext(const RunningView& running, bool narrow, BePlace& place, Plan& plan);
  bool LaunchPartner(const HeadView& task, const BePair& pair, BePlace& place, Plan& plan);
  bool OlderNeedsRoom(const HeadView& task) const;
  void LookWhenPlacesOpen(Plan& plan) const;
  void FindHold(const HeadView& head, PlannedHold& hold) const;

  const Snapshot& snapshot_;
  const LcActivity& lc_;
  FairShare& shares_;
  OpenPlaces places_;
  BeJudge judge_;
  BePairs pairs_;
  WholeTurn turn_;
  std::bitset<kMaxHeads> launched_;
  int32_t recent_ = -1;  // the head that was launched last in this round
  PlaceIndex recent_place_ = kNoPlace;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_PLACES_H_
