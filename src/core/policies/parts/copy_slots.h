// N_tr: how many BE copies may run in each direction (Baymax eq. 5), counted over one plan.
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
    const CopyState& state = copies_[Index(head)];
    return state.be_active < state.be_limit && !IsLeft(head);
  }
  void Take(const HeadView& head) {
    ++copies_[Index(head)].be_active;
    Follow(head);
  }
  // Both as counts: the copies that run, and N_tr, or 1 where the next slot is another app's.
  PlannedHold Hold(const HeadView& head) const {
    const CopyState& state = copies_[Index(head)];
    const bool full = state.be_active >= state.be_limit;
    return {head.task, Reason::kHoldCopies, state.be_active, full ? state.be_limit : 1};
  }

 private:
  static size_t Index(const HeadView& head) { return static_cast<size_t>(head.direction); }
  void Follow(const HeadView& copy) {
    if (copy.pinned && copy.followed) followed_[Index(copy)] |= uint64_t{1} << copy.app;
  }
  bool IsLeft(const HeadView& head) const {
    if (!head.pinned) return false;
    for (uint64_t apps = followed_[Index(head)]; apps != 0; apps &= apps - 1) {
      if (shares_.LeavesTo(head, std::countr_zero(apps))) return true;
    }
    return false;
  }

  const FairShare& shares_;
  std::array<CopyState, 4> copies_;
  std::array<uint64_t, 4> followed_{};  // BE apps with a pinned copy that another one follows
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_
