// The places that an arrangement opens for BE work, and what BE work holds of them.
//
// The whole arrangement has one place. A split has the BE side, the LC side, and the whole device
// for tasks that cannot be confined. Work that a reservation or a quota confines has only its home
// (be_quota.h). A place that overlaps LC's places opens only while no query is active.
// Invariant: each place is listed once. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_OPEN_PLACES_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_OPEN_PLACES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/lc_activity.h"
#include "src/core/seams/snapshot.h"
#include "src/core/seams/width.h"

namespace gpushare::core {

enum class PlaceRole : uint8_t {
  kWhole,   // the only place without a split
  kBeSide,  // of the split
  kLcSide,  // of the split
  // The whole device under a split: for tasks that no partition holds, and for graphs in segments
  // while no query is active. They cannot have a part on each side.
  kUnconfined,
  kHome,  // of work that a reservation or a quota confines, where no other place is it
};
// Of live tasks that can be evicted.
struct Evictions {
  int64_t sum_ns = 0;      // of what each adds to a query
  int64_t slowest_ns = 0;  // p99 of the one that leaves last, as observed
  int64_t in_turn_ns = 0;  // sum of the p99s
};
struct BePlace {
  PlaceIndex index = kNoPlace;
  PlaceRole role = PlaceRole::kWhole;
  bool overlaps_lc = false;
  Reason closed = Reason::kNone;  // why nothing may be launched on it now
  int32_t live = 0;
  int32_t window = kBeWindowPerPlace;       // most live tasks
  bool within_quotas = true;                // quotas bound the workers of all live tasks
  std::array<QueueId, kQuotaLanes> queues;  // of the live tasks
  std::array<int32_t, kQuotaLanes> next;    // their apps where they are followed, else -1
  Evictions evictions;
};
// What live BE work holds. A mask has one bit a place.
struct BeLoad {
  uint64_t live = 0;      // places that share SMs with live work
  uint64_t alone = 0;     // with live work that runs alone
  uint64_t leaving = 0;   // with a graph in segments that is evicted
  uint64_t draining = 0;  // apps of tasks that drain and are followed
  Delay delay;            // of a query, by the work on LC's places

  // With one more task there.
  Delay DelayWith(int64_t blocking_ns, bool evictable) const {
    if (evictable) return {std::max(delay.eviction_ns, blocking_ns), delay.uncuttable_ns};
    return {delay.eviction_ns, SumNs(delay.uncuttable_ns, blocking_ns)};
  }
};

class OpenPlaces {
 public:
  OpenPlaces(const Snapshot& snapshot, const Arrangement& arrangement, const LcActivity& lc);

  absl::Span<BePlace> all() { return {places_.data(), count_}; }
  absl::Span<const BePlace> all() const { return {places_.data(), count_}; }
  // Of the tasks on LC's places that share SMs with the place.
  Evictions EvictionsOn(const BePlace& place) const;
  // The sides of a split; only under one.
  const BePlace& BeSide() const { return places_[0]; }
  const BePlace& LcSide() const { return places_[1]; }
  // The whole device: the only place without a split, or that of unconfined work under one.
  BePlace& Whole() { return places_[WholeSlot()]; }
  const BePlace& Whole() const { return places_[WholeSlot()]; }
  // Null where the home is no place of this arrangement.
  const BePlace* HomeOf(const HeadView& task) const;

  const BeLoad& load() const { return load_; }
  const BeQuotas& quotas() const { return quotas_; }
  bool any_be() const { return any_be_; }  // BE work runs or is ready
  bool IsSplit() const { return is_split_; }
  // Whether the place lies beside the LC side of a split.
  bool IsBesideLc(const BePlace& place) const {
    return place.role == PlaceRole::kBeSide || (place.role == PlaceRole::kHome && is_split_);
  }
  // Whether quotas leave the task SMs of its own beside all that is live on the place: it neither
  // waits for those tasks nor takes what is theirs.
  bool HasOwnSms(const HeadView& task, const BePlace& place) const {
    return place.index == kWholeDevice && place.within_quotas && quotas_.FitsBeside(task);
  }
  // Most live tasks on the place with this one.
  int32_t WindowOf(const HeadView& task, const BePlace& place) const {
    return HasOwnSms(task, place) ? kQuotaLanes : place.window;
  }
  // Whether no other task may share SMs with it.
  bool RunsAlone(const HeadView& task) const {
    return task.runs_alone || RunsInSegments(snapshot_, task) || quotas_.IsUnbounded(task);
  }
  // False only where no task of the queue is live on any place.
  bool MayHaveLive(QueueId queue) const { return (live_queues_ & QueueBit(queue)) != 0; }
  // A launch of the task on the place was planned, with so many workers.
  void Take(const HeadView& task, BePlace& place, const Width& chosen);

 private:
  // Several queues may share it.
  static uint64_t QueueBit(QueueId queue) { return uint64_t{1} << (queue.value % kWordBits); }
  size_t WholeSlot() const { return is_split_ ? 2 : 0; }
  void AddPlace(PlaceIndex index, PlaceRole role);
  void AddHomes();
  void CountLive();
  Delay DelayOfRunning(const RunningView& running) const;
  void AddPart(const HeadView& task, const PartView& part);
  void AddLive(const HeadView& task, BePlace& place, const Width& width);

  const Snapshot& snapshot_;
  const LcActivity& lc_;
  const bool is_split_;
  BeQuotas quotas_;
  std::array<BePlace, 1 + 2 + kMaxSplits> places_;  // the whole device, two sides, homes
  size_t count_ = 0;
  bool any_be_ = false;
  uint64_t live_queues_ = 0;  // QueueBit of queues of live tasks
  BeLoad load_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CARRY_OUT_OPEN_PLACES_H_
