// BE copies in pieces that LC copies can wait for (be_copies.h).

#include "src/core/policies/adaptive/carry_out/be_copies.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/adaptive/arrangement/worst_latency.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/copy_slots.h"
#include "src/core/policies/parts/launch_form.h"

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
  std::array<int64_t, std::tuple_size_v<decltype(Snapshot::copies)>> left_ns_{};
  int64_t pageable_ns_ = kNever;  // of all directions together: the host is what they occupy
  bool pageable_taken_ = false;
  Reason hold_;
  Reason fits_;
};

// Pinned copies use the link. Pageable ones move at a fraction of its rate, and disturb as little.
LinkUse PinnedUse(const HeadView& copy) {
  return copy.pinned ? LinkUseOf(copy.direction) : LinkUse{0};
}

// What BE copies do to the kernels of LC apps.
class Disturbance {
 public:
  explicit Disturbance(const Snapshot& snapshot)
      : snapshot_(snapshot), budget_ns_(MinBlockingBudget(snapshot)) {
    for (const RunningView& running : snapshot.running) {
      if (IsBeCopy(running.task)) Take(running.task);
    }
  }
  // Of an app that the copy would bring beyond its limit; else its latency is within the limit.
  const LatencyEstimate& WorstBeside(const HeadView& copy) { return At(copy).worst; }
  // The longest piece that delays a query which meets it by no more than half of what may delay it.
  int64_t LongestNs(const HeadView& copy) {
    const double kept = At(copy).kept;
    if (budget_ns_ == kNever || kept >= 1) return kNever;
    if (!(kept > 0)) return 0;
    const int64_t delay_ns = budget_ns_ / kIdlePieceDivisor;
    const double longest = static_cast<double>(delay_ns) * kept / (1 - kept);
    return static_cast<int64_t>(std::min(longest, static_cast<double>(kMaxDurationNs)));
  }
  // One piece at a time in each direction: several together would last beyond a query's arrival.
  bool IsBusy(const HeadView& copy) const { return (running_ & PinnedUse(copy)) != 0; }
  // Whether a query may be late beside the copy now and then. Without such queries nobody would see
  // that a direction was closed for nothing, and copies would wait as long as queries follow one
  // another.
  bool HasCreditBeside(const HeadView& copy) {
    if (budget_ns_ == kNever || IsBusy(copy)) return false;
    const LatencyEstimate& worst = At(copy).worst;
    const int64_t delay_ns = std::max(worst.value_ns - worst.limit_ns, budget_ns_ + 1);
    return CreditFor(snapshot_, delay_ns).covered;
  }
  void Take(const HeadView& copy) { running_ = UseWith(copy); }

 private:
  struct Effect {
    bool known = false;
    double kept = 1;  // of its speed, by the LC app that loses most
    LatencyEstimate worst;
  };

  LinkUse UseWith(const HeadView& copy) const {
    return static_cast<LinkUse>(running_ | PinnedUse(copy));
  }
  const Effect& At(const HeadView& copy) {
    const LinkUse use = PinnedUse(copy) == 0 ? LinkUse{0} : UseWith(copy);
    Effect& effect = effects_[use];
    if (effect.known) return effect;
    effect.known = true;
    for (const LcAppView& app : snapshot_.lc_apps) {
      effect.kept = std::min(effect.kept, static_cast<double>(app.speed_beside_copies[use]));
    }
    if (effect.kept < 1) effect.worst = WorstLatencyBesideCopies(snapshot_, use);
    return effect;
  }

  const Snapshot& snapshot_;
  int64_t budget_ns_;
  LinkUse running_ = 0;
  std::array<Effect, kLinkUses> effects_;
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
bool HasCreditForPiece(const Snapshot& snapshot, const HeadView& head) {
  const int64_t piece_ns = PieceNs(head, kCopyPieceBytesMin);
  return piece_ns > MinBlockingBudget(snapshot) / kIdlePieceDivisor &&
         CreditFor(snapshot, kIdlePieceDivisor * piece_ns).covered;
}

// What of a copy is launched: so many bytes, 0: all of it.
struct Piece {
  int64_t bytes = 0;
  Reason reason = Reason::kNone;  // kNone: nothing
};

class CopyPlanner {
 public:
  CopyPlanner(const Snapshot& snapshot, const LcActivity& lc, FairShare& shares)
      : snapshot_(snapshot),
        lc_active_(lc.active),
        shares_(shares),
        slots_(snapshot, shares_),
        time_(snapshot, lc.active),
        disturbance_(snapshot) {}

  // Sorts the copies into the order of their turns.
  void Sort(BeOrder& copies) const { shares_.Sort(copies); }

  // Launches the next piece of the copy, or holds it. False: the plan is full.
  bool PlanCopy(const HeadView& head, Plan& plan) {
    if (!slots_.Free(head)) {
      plan.holds.TryAdd(slots_.Hold(head));
      return true;
    }
    const LatencyEstimate& worst = disturbance_.WorstBeside(head);
    const bool disturbs = worst.value_ns > worst.limit_ns;
    const bool open = !lc_active_ && !disturbance_.IsBusy(head);
    if (disturbs && !open && !disturbance_.HasCreditBeside(head)) {
      plan.holds.TryAdd({head.task, Reason::kHoldBlocking, worst.value_ns, worst.limit_ns});
      return true;
    }
    int64_t left_ns = time_.left_ns(head);
    if (disturbs && open) left_ns = std::min(left_ns, disturbance_.LongestNs(head));
    Piece piece = PieceWithin(head, left_ns, disturbs);
    if (piece.reason == Reason::kNone) {
      plan.holds.TryAdd({head.task, time_.hold(), head.remaining.duration_ns, left_ns});
      return true;
    }
    if (disturbs && !open) piece.reason = Reason::kTailCredit;
    return Launch(head, piece, plan);
  }

 private:
  Piece PieceWithin(const HeadView& head, int64_t left_ns, bool disturbs) {
    if (head.remaining.duration_ns <= left_ns) return {0, time_.fits()};
    const int64_t bytes = BytesWithin(head, left_ns);
    if (bytes >= kCopyPieceBytesMin) return {bytes, Reason::kFillsGap};
    // A slow one is not held for ever.
    if (time_.OnlyPageableLimits(head)) return {kCopyPieceBytesMin, Reason::kFillsGap};
    if (lc_active_ || time_.WaitsItsTurn(head)) return {};
    if (head.awaited_by_lc) return {kCopyPieceBytesMin, Reason::kFillsGap};
    const bool has_credit =
        HasCreditForPiece(snapshot_, head) || (disturbs && disturbance_.HasCreditBeside(head));
    return has_credit ? Piece{kCopyPieceBytesMin, Reason::kTailCredit} : Piece{};
  }

  bool Launch(const HeadView& head, const Piece& piece, Plan& plan) {
    PlannedLaunch launch =
        MakeLaunch(head.task, Form::kMemcpy, kWholeDevice, LaneClass::kCopy, piece.reason);
    launch.blocks_max = std::min(piece.bytes, head.blocks_left);  // the last piece is shorter
    if (!plan.launches.TryAdd(launch)) return false;
    slots_.Take(head);
    shares_.Charge(head);
    disturbance_.Take(head);
    time_.Take(head, PieceNs(head, launch.blocks_max));
    return true;
  }

  const Snapshot& snapshot_;
  const bool lc_active_;
  FairShare& shares_;
  CopySlots slots_;
  CopyTime time_;
  Disturbance disturbance_;
};

}  // namespace

void PlanBeCopies(const Snapshot& snapshot, const LcActivity& lc, FairShare& shares, Plan& plan) {
  BeOrder copies;
  for (const HeadView& head : snapshot.heads) {
    if (IsBeCopy(head)) copies.TryAdd(&head);
  }
  if (copies.empty()) return;
  CopyPlanner planner(snapshot, lc, shares);
  planner.Sort(copies);
  for (const HeadView* const head : copies) {
    if (!planner.PlanCopy(*head, plan)) return;
  }
}

}  // namespace gpushare::core
