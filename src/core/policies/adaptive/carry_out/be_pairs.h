// Two BE kernels that share every SM of the whole device, while no LC query is active.
//
// Of the co-schedule table's ratios the one counts that gains most: the sum of both speeds, less
// their error bar and the gap between two tasks of a queue, over one kernel alone (Kernelet's CP).
// One of the two is the head that is next by weight; the other may not have got more than its
// share. When one ends, the next task that pairs with the other at its width takes its room; where
// none does, the other takes all of the SMs.
//
// Only kernels with workers pair, and none whose app has a quota. Threads: the planner's. Pure;
// nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_PAIRS_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_PAIRS_H_

#include <cstdint>

#include "src/core/policies/adaptive/carry_out/be_judge.h"
#include "src/core/policies/adaptive/carry_out/open_places.h"
#include "src/core/policies/parts/fair_share.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

struct BePair {
  const HeadView* partner = nullptr;  // null: no pair gains
  int32_t workers_per_sm = 0;         // of the task that a partner was sought for
  int32_t partner_workers_per_sm = 0;
  double gain = 0;  // share of the device
  const HeadView* runner_up = nullptr;
  double runner_up_gain = 0;
};

class BePairs {
 public:
  BePairs(const Snapshot& snapshot, const OpenPlaces& places, const BeJudge& judge,
          const FairShare& shares, bool shares_sms)
      : snapshot_(snapshot),
        places_(places),
        judge_(judge),
        shares_(shares),
        shares_sms_(shares_sms) {}

  // Whether the place is one on which BE work pairs: the whole device, without a split.
  bool MayPairOn(const BePlace& place) const {
    return shares_sms_ && place.role == PlaceRole::kWhole && snapshot_.co_schedules.kernels > 0;
  }
  // The best partner of a task among the heads. `workers_per_sm`: what the task runs with already;
  // 0: as the pair wants. `runs`: it is on the device. `next`: the head that is next by weight,
  // which no partner may go before by more than the slack, nor once it has waited for
  // kBePassedNsMax.
  BePair FindPartner(const HeadView& task, bool runs, int32_t workers_per_sm, const HeadView& next,
                     const BePlace& place) const;
  // How many workers the running task has on each SM; 0: its parts are of another form, or it has
  // several.
  int32_t WidthOf(const RunningView& running) const;
  // Whether the running task has less than all of the SMs' room, though it has block tasks for
  // more.
  bool IsNarrow(const RunningView& running) const;

 private:
  bool Pairs(const HeadView& task) const;
  bool GoesFirst(const HeadView& next) const;
  bool MayJoin(const HeadView& head, const HeadView& task, const HeadView& next) const;
  bool FitsTogether(const HeadView& task, const HeadView& head, const CoScheduleOption& option,
                    const BePlace& place) const;
  bool FitsBudget(const HeadView& task, const CoScheduleOption& option, size_t side,
                  const BePlace& place) const;

  const Snapshot& snapshot_;
  const OpenPlaces& places_;
  const BeJudge& judge_;
  const FairShare& shares_;
  const bool shares_sms_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_BE_PAIRS_H_
