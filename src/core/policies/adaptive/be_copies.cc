// BE copies in pieces that LC copies can wait for (be_copies.h).

#include "src/core/policies/adaptive/be_copies.h"

#include <algorithm>
#include <array>

#include "src/core/base/tuning.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/copy_slots.h"

namespace gpushare::core {
namespace {

bool IsBeCopy(const HeadView& task) {
  return task.app_class == AppClass::kBestEffort && task.kind == TaskKind::kMemcpy;
}

bool IsPageable(const HeadView& copy) {
  const bool host = copy.direction == CopyDirection::kHostToDevice ||
                    copy.direction == CopyDirection::kDeviceToHost;
  return host && !copy.pinned;
}

// Predicted duration of a piece of the copy; of 0 bytes: all of it.
int64_t PieceNs(const HeadView& copy, int64_t bytes) {
  if (bytes <= 0 || bytes >= copy.blocks_left) return copy.remaining.duration_ns;
  const double share = static_cast<double>(bytes) / static_cast<double>(copy.blocks_left);
  return static_cast<int64_t>(share * static_cast<double>(copy.remaining.duration_ns));
}

// Time that BE copies may still keep an LC copy waiting, by direction.
class CopyTime {
 public:
  CopyTime(const Snapshot& snapshot, bool lc_active) {
    const int64_t budget_ns = MinBlockingBudget(snapshot);
    const int64_t headroom_ns = lc_active ? MinHeadroom(snapshot) : kNever;
    hold_ = headroom_ns < budget_ns ? Reason::kHoldHeadroom : Reason::kHoldBlocking;
    fits_ = headroom_ns < budget_ns ? Reason::kFitsHeadroom : Reason::kFitsBlockingBudget;
    if (std::min(budget_ns, headroom_ns) == kNever) fits_ = Reason::kIdleDevice;
    const int64_t piece_ns =
        budget_ns == kNever ? kNever
                            : budget_ns / (lc_active ? kActivePieceDivisor : kIdlePieceDivisor);
    for (size_t direction = 0; direction < left_ns_.size(); ++direction) {
      // The link is full duplex: a direction that no LC copy uses blocks nobody.
      if (!snapshot.copies[direction].lc_uses) {
        left_ns_[direction] = kNever;
        continue;
      }
      left_ns_[direction] = std::min(piece_ns, headroom_ns);
    }
    const int64_t longest_ns = snapshot.lc_apps.empty() ? kNever : kPageablePieceNs;
    pageable_ns_ = std::min({piece_ns, headroom_ns, longest_ns});
    for (const RunningView& running : snapshot.running) {
      // A piece in flight takes at most the budget that it was cut to, not the rest of its task.
      if (IsBeCopy(running.task)) {
        Take(running.task, std::min(running.task.remaining.duration_ns, budget_ns));
      }
    }
  }
  int64_t left_ns(const HeadView& copy) const {
    const int64_t left_ns = left_ns_[static_cast<size_t>(copy.direction)];
    return IsPageable(copy) ? std::min(left_ns, pageable_ns_) : left_ns;
  }
  void Take(const HeadView& copy, int64_t ns) {
    int64_t& left_ns = left_ns_[static_cast<size_t>(copy.direction)];
    left_ns = std::max<int64_t>(0, LeftNs(left_ns, ns));
    // One at a time: the next piece comes after a plan, in which LC work goes first.
    if (!IsPageable(copy) || pageable_ns_ == kNever) return;
    pageable_ns_ = 0;
    pageable_taken_ = true;
  }
  // Another pageable piece is on its way.
  bool WaitsItsTurn(const HeadView& copy) const { return IsPageable(copy) && pageable_taken_; }
  // Whether nothing but kPageablePieceNs is shorter than the smallest piece.
  bool OnlyPageableLimits(const HeadView& copy) const {
    return IsPageable(copy) && !pageable_taken_ && pageable_ns_ == kPageablePieceNs &&
           left_ns_[static_cast<size_t>(copy.direction)] >= PieceNs(copy, kCopyPieceBytesMin);
  }
  Reason hold() const { return hold_; }
  Reason fits() const { return fits_; }

 private:
  std::array<int64_t, 4> left_ns_{};
  int64_t pageable_ns_ = kNever;  // of all directions together: the host is what they occupy
  bool pageable_taken_ = false;
  Reason hold_;
  Reason fits_;
};

// Bytes that move in `ns` at the predicted rate, rounded down to whole pages. The latency before
// the first byte does not occupy the link.
int64_t BytesWithin(const HeadView& head, int64_t ns) {
  const double rate = static_cast<double>(head.blocks_left) /
                      static_cast<double>(std::max<int64_t>(head.remaining.duration_ns, 1));
  const int64_t bytes = static_cast<int64_t>(rate * static_cast<double>(std::max<int64_t>(ns, 0)));
  return bytes / kCopyPieceAlignment * kCopyPieceAlignment;
}

// Whether a budget is shorter than the smallest piece, and the tail accounts have credit for it.
bool HasCredit(const Snapshot& snapshot, const HeadView& head) {
  const int64_t piece_ns = PieceNs(head, kCopyPieceBytesMin);
  return piece_ns > MinBlockingBudget(snapshot) / kIdlePieceDivisor &&
         AskTailAccounts(snapshot, kIdlePieceDivisor * piece_ns).covered;
}

}  // namespace

void PlanBeCopies(const Snapshot& snapshot, const LcActivity& lc, Plan& plan) {
  CopySlots slots(snapshot);
  CopyTime time(snapshot, lc.active);
  for (const HeadView& head : snapshot.heads) {
    if (!IsBeCopy(head)) continue;
    if (!slots.Free(head.direction)) {
      plan.holds.TryAdd(slots.Hold(head));
      continue;
    }
    const int64_t left_ns = time.left_ns(head);
    const int64_t duration_ns = head.remaining.duration_ns;
    PlannedLaunch launch;
    launch.task = head.task;
    launch.form = Form::kMemcpy;
    launch.lane_class = LaneClass::kCopy;
    launch.reason = time.fits();
    if (duration_ns > left_ns) {
      launch.blocks_max = BytesWithin(head, left_ns);
      launch.reason = Reason::kFillsGap;
      if (launch.blocks_max < kCopyPieceBytesMin && time.OnlyPageableLimits(head)) {
        launch.blocks_max = kCopyPieceBytesMin;  // a slow one is not held for ever
      }
      if (launch.blocks_max < kCopyPieceBytesMin && !lc.active && !time.WaitsItsTurn(head) &&
          HasCredit(snapshot, head)) {
        launch.blocks_max = kCopyPieceBytesMin;
        launch.reason = Reason::kTailCredit;
      }
      if (launch.blocks_max < kCopyPieceBytesMin) {
        plan.holds.TryAdd({head.task, time.hold(), duration_ns, left_ns});
        continue;
      }
    }
    launch.blocks_max = std::min(launch.blocks_max, head.blocks_left);  // the last piece is shorter
    if (!plan.launches.TryAdd(launch)) return;
    slots.Take(head.direction);
    time.Take(head, PieceNs(head, launch.blocks_max));
  }
}

}  // namespace gpushare::core
