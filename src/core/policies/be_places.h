// Filling the places that a layout opens with BE work.
//
// The whole layout has one place. A split has the BE side, the LC side, and the whole device for
// tasks that cannot be confined. Each place is judged by itself: one that overlaps LC's places
// opens only while no query is active, and only for blocking times within the budget. On an open
// place a task that already runs on the other side comes first (elastic return), then the head of
// the BE app that is next by weight (fair_share.h). One live task fills a place; one more may queue
// behind it. A graph in segments has no task beside or behind it: what is outstanding of both would
// block a query. One that no partition holds needs both sides of a split to be empty. When it is
// next by weight nobody else is launched on them, and tasks whose apps had more leave them. Work
// that a reservation or a quota confines has only its home (be_quota.h).

#ifndef GPUSHARE_SRC_CORE_POLICIES_BE_PLACES_H_
#define GPUSHARE_SRC_CORE_POLICIES_BE_PLACES_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/policies/adaptive_layout.h"
#include "src/core/policies/be_quota.h"
#include "src/core/policies/bounds.h"
#include "src/core/policies/fair_share.h"
#include "src/core/policies/launch_form.h"
#include "src/core/policies/lc_activity.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class BePlaces {
 public:
  // `forced`: evictable tasks are launched without a check of their blocking time.
  BePlaces(const Snapshot& snapshot, const Layout& layout, const LcActivity& lc, bool forced);

  void Fill(Plan& plan);
  // After Fill: a reason for every BE head that is not launched.
  void HoldRest(Plan& plan) const;

 private:
  enum class Role : uint8_t {
    kWhole,   // the only place of the whole layout
    kBeSide,  // of the split
    kLcSide,  // of the split
    // The whole device under a split: for tasks that no partition holds, and for graphs in segments
    // while no query is active. They cannot have a part on each side.
    kUnconfined,
    kHome,  // of work that a reservation or a quota confines, where no other place is it
  };
  struct Place {
    PlaceIndex index = kNoPlace;
    Role role = Role::kWhole;
    bool overlaps_lc = false;
    Reason closed = Reason::kNone;  // why nothing may be launched on it now
    int32_t live = 0;
    std::array<QueueId, kBeWindowPerPlace> queues;  // of the live tasks
    std::array<int32_t, kBeWindowPerPlace> next;    // their apps where they are followed, else -1
  };
  struct Judgement {
    Reason reason = Reason::kNone;  // kNone: it may be launched
    int64_t value_ns = 0;
    int64_t limit_ns = 0;
    bool on_credit = false;  // of the tail accounts
  };

  void AddPlace(PlaceIndex index, Role role);
  void AddHomes();
  bool IsBesideLc(const Place& place) const;
  void CountLive();
  bool IsMeasured(const HeadView& task) const;
  Sides SidesOf(const HeadView& task) const;
  bool MayUse(const HeadView& task, const Place& place) const;
  Judgement JudgeBlocking(const HeadView& task, const Place& place) const;
  Judgement JudgeRoom(const HeadView& task, const Place& place) const;
  Judgement HoldForQuota(const HeadView& task) const;
  Judgement JudgeCredit(int64_t blocking_ns, const Judgement& blocking) const;
  Judgement Judge(const HeadView& task, const Place& place) const;
  bool MayLaunch(const HeadView& task, const Place& place) const;
  Reason LaunchReason(const HeadView& task, const Place& place) const;
  bool Launch(const HeadView& task, Place& place, Reason reason, Plan& plan);
  bool ReturnRunning(Place& place, Plan& plan);
  bool LaunchHead(Place& place, Plan& plan);
  bool RunsAlone(const HeadView& task) const {
    return RunsInSegments(snapshot_, task) || quotas_.IsUnbounded(task);
  }
  const Place* HomeOf(const HeadView& task) const;
  const Place& WholePlace() const { return places_[layout_.split < 0 ? 0 : 2]; }
  bool NeedsAll(const HeadView& task) const;
  bool PrefersWhole(const HeadView& task) const;
  void ReturnSegments(Plan& plan) const;
  void FindUnconfinable();
  bool LeavesSides(const HeadView& task, const Place& place) const;
  void EvictForUnconfinable(Plan& plan) const;
  bool SharesQueue(const HeadView& task, const Place& place) const;
  bool LeavesPlace(const HeadView& task, const Place& place) const;
  bool MustWaitAlone(const HeadView& task, const Place& place) const;
  bool OlderNeedsRoom(const HeadView& task) const;
  void AddLive(const HeadView& task, Place& place);

  const Snapshot& snapshot_;
  const Layout& layout_;
  const LcActivity& lc_;
  const bool forced_;
  const Budgets budgets_;
  std::array<Place, 3 + kMaxSplits> places_;
  size_t place_count_ = 0;
  bool any_be_ = false;  // BE work runs or is ready
  // Places that share SMs with live BE work; with live work that runs alone; with a graph in
  // segments that is evicted.
  uint64_t live_ = 0;
  uint64_t alone_ = 0;
  uint64_t leaving_ = 0;
  int64_t fixed_ns_ = 0;     // remaining time of BE on LC's places that cannot be evicted
  int64_t eviction_ns_ = 0;  // most that an eviction adds, of BE on LC's places
  std::bitset<kMaxHeads> launched_;
  int32_t recent_ = -1;  // the head that was launched last in this round
  PlaceIndex recent_place_ = kNoPlace;
  FairShare shares_;
  // The next task that needs the whole device for itself and may start when no query is active: a
  // graph in segments that no partition holds, or unbounded work (be_quota.h).
  const HeadView* unconfinable_ = nullptr;
  BeQuotas quotas_;
  uint64_t draining_ = 0;  // apps of tasks that drain and are followed
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_BE_PLACES_H_
