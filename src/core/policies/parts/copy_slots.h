// N_tr: how many BE copies may run in each direction (Baymax eq. 5), counted over one plan.
//
// Eq. 5 assumes that copies of pageable memory gain from each other until the link is full. What
// was measured says otherwise (its fig. 8): the rate of pageable copies is that of all of them
// together (DeviceProfile). One gets all of it, so one runs at a time, and its N_tr is 1.
//
// Pinned copies of one direction share the link, so a slot beside one is left to the app of that
// copy where it is next by weight (fair_share.h). Pageable ones are slower than the link: each has
// its own share, and leaves no slot.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_

#include <array>
#include <bit>
#include <cstdint>

#include "src/core/policies/parts/fair_share.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class CopySlots {
 public:
  // The shares must outlive the slots.
  CopySlots(const Snapshot& snapshot, const FairShare& shares)
      : shares_(shares), copies_(snapshot.copies) {
    for (const RunningView& running : snapshot.running) {
      const HeadView& task = running.task;
      if (task.app_class == AppClass::kBestEffort && task.kind == TaskKind::kMemcpy) Follow(task);
    }
  }
  bool Free(const HeadView& head) const {
    return ActiveBeside(head) < LimitOf(head) && !IsLeft(head);
  }
  void Take(const HeadView& head) {
    ++copies_[Index(head)].be_active;
    Follow(head);
  }
  // Both as counts: the copies that run, and N_tr, or 1 where the next slot is another app's.
  PlannedHold Hold(const HeadView& head) const {
    const int32_t active = ActiveBeside(head);
    const int32_t limit = LimitOf(head);
    return {head.task, Reason::kHoldCopies, active, active >= limit ? limit : 1};
  }

 private:
  static size_t Index(const HeadView& head) { return static_cast<size_t>(head.direction); }
  const CopyState& StateOf(const HeadView& head) const { return copies_[Index(head)]; }
  // A pageable copy is full by its like, or by all copies.
  bool FullOfPageable(const HeadView& head) const {
    return !head.pinned && pageable_[Index(head)] >= kPageableAtOnce;
  }
  int32_t ActiveBeside(const HeadView& head) const {
    return FullOfPageable(head) ? pageable_[Index(head)] : StateOf(head).be_active;
  }
  int32_t LimitOf(const HeadView& head) const {
    return FullOfPageable(head) ? kPageableAtOnce : StateOf(head).be_limit;
  }
  void Follow(const HeadView& copy) {
    if (!copy.pinned) ++pageable_[Index(copy)];
    if (copy.pinned && copy.followed) followed_[Index(copy)] |= uint64_t{1} << copy.app;
  }
  bool IsLeft(const HeadView& head) const {
    if (!head.pinned) return false;
    for (uint64_t apps = followed_[Index(head)]; apps != 0; apps &= apps - 1) {
      if (shares_.LeavesTo(head, std::countr_zero(apps))) return true;
    }
    return false;
  }

  static constexpr int32_t kPageableAtOnce = 1;

  const FairShare& shares_;
  std::array<CopyState, 4> copies_;
  std::array<int32_t, 4> pageable_{};   // BE copies of pageable memory
  std::array<uint64_t, 4> followed_{};  // BE apps with a pinned copy that another one follows
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_
