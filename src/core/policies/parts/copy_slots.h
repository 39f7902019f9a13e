// N_tr: how many BE copies may run in each direction (Baymax eq. 5), counted over one plan.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_

#include <array>
#include <cstdint>

#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class CopySlots {
 public:
  explicit CopySlots(const Snapshot& snapshot) : copies_(snapshot.copies) {}
  bool Free(CopyDirection direction) const {
    const CopyState& state = copies_[Index(direction)];
    return state.be_active < state.be_limit;
  }
  void Take(CopyDirection direction) { ++copies_[Index(direction)].be_active; }
  // Both as counts: the copies that run and N_tr.
  PlannedHold Hold(const HeadView& head) const {
    const CopyState& state = copies_[Index(head.direction)];
    return {head.task, Reason::kHoldCopies, state.be_active, state.be_limit};
  }

 private:
  static constexpr size_t Index(CopyDirection direction) { return static_cast<size_t>(direction); }
  std::array<CopyState, 4> copies_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_COPY_SLOTS_H_
