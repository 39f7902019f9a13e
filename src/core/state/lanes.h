// The lanes of places, found by (place, class) in a few nanoseconds. Those of the whole device are
// made at start, those of another place with it (places.h).
//
// BE lanes are few, because streams share hardware queues: behind 8 busy BE streams, work of other
// streams waits for theirs (docs/hardware.md). On the whole device two are for any BE launch: one
// fills the SMs, and a second hides the launch latency. Two more serve apps with quotas, whose
// launches leave SMs to others: kQuotaLanes launches run side by side. The LC side of a split has a
// lane of each class, the BE side one BE lane.
//
// A lane that hung is given up, and the device replaces it under the same index. The launches of
// its class use the other lanes of its place meanwhile.
//
// A lane ends with its place, and its index may then be another place's. A submitter finds a lane
// by a published route, and is inside the gate until it has left the lane. So a place may end once
// no route names it, no launch is on it, and the gate has been empty since (flow/places.h).
//
// Threads: made by one; look-ups and the atomic counts from any; the rest under the lock of Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_LANES_H_
#define GPUSHARE_SRC_CORE_STATE_LANES_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/seams/device.h"
#include "src/core/seams/snapshot.h"
#include "src/core/state/places.h"

namespace gpushare::core {

struct Lane {
  LaneSpec spec;
  LaneClass lane_class = LaneClass::kPlain;
  std::atomic<bool> usable{false};
  std::atomic<int32_t> in_flight{0};  // launches not yet reported
  std::atomic<uint32_t> streams{0};   // how often its stream was replaced
  // Evictable launches that are on the device or about to be. The launcher raises it before it
  // reads the lane's epoch and the gate. An LC caller that has entered the gate and reads 0 then
  // needs neither to raise the epoch nor to write it.
  std::atomic<int32_t> evictable{0};
  std::atomic<TimeNs> evicted_at_ns{0};  // last eviction write
  // Fused launches on this lane whose second part is not reported yet. A launch behind them waits
  // for that part too (decision 10).
  std::atomic<int32_t> fused_partners_pending{0};
  // The second part of a fused launch uses this lane's eviction word. The lane holds nothing else
  // until that part is reported, because one leader at a time writes a lane's word.
  std::atomic<bool> holds_fused_partner{false};
  // A launch in segments is on the lane: until it is reported the device takes no other there.
  std::atomic<bool> holds_segments{false};
  // The flow's own.
  int32_t parts = 0;        // launches in the flow's tables
  TimeNs progress_ns = 0;   // last completion
  TimeNs replaced_ns = 0;   // since then its stream is another one
  bool to_replace = false;  // given up; the device has not answered yet
};

// What the device made for a place.
struct MadeLane {
  LaneIndex index = kNoLane;
  LaneSpec spec;  // evictable, unless its self-test found evictions blocked
  LaneClass lane_class = LaneClass::kPlain;
};
struct MadePlace {
  BoundedList<MadeLane, 3> lanes;
};

class Lanes {
 public:
  // Names up to `splits_max` splits on a device that has partitions, and makes the whole device's
  // lanes.
  absl::Status Open(Device& device, int splits_max);
  // The same, and makes every place. None of them ever ends.
  absl::Status Create(Device& device, int splits_max);

  // A place and its lanes on the device. After an error the device has neither. ABORTED: it could
  // not take back what it had made. Calls `before` before each call of the device. Needs no lock.
  absl::StatusOr<MadePlace> MakeOnDevice(Device& device, PlaceIndex place,
                                         absl::FunctionRef<void()> before) const;
  // From now on its lanes are picked.
  void Publish(PlaceIndex place, const MadePlace& made);
  // Whether no launch is on its lanes or about to be.
  bool IsEmpty(PlaceIndex place) const;
  // Its lanes are picked no more, or again.
  void SetUsable(PlaceIndex place, bool usable);
  // The device has ended it: its lanes are gone.
  void Forget(PlaceIndex place);
  Places& named() { return named_; }
  const Places& named() const { return named_; }

  // The least busy usable lane of the class; kNoLane when there is none. `salt` spreads apps.
  LaneIndex Pick(PlaceIndex place, LaneClass lane_class, uint32_t salt) const;
  // The least busy copy lane of the direction. Copies of both on one lane would wait for each
  // other, and the link is full duplex. `leaves_second`: not the second lane of a direction, which
  // is for LC apps that yield.
  LaneIndex PickForCopy(CopyDirection direction, bool leaves_second = false) const;
  // An empty lane for a graph of an LC app that yields: the second copy lane of a direction. A
  // launch in segments has its lane to itself, and submitters launch on LC and plain lanes, where
  // regions are too. kNoLane when there is none.
  LaneIndex PickForYielding() const;
  // The BE lane of a launch within a quota. On the whole device an idle one, kNoLane when there is
  // none: behind another launch it would wait whatever SMs are free, and so would work of other
  // lanes with the same hardware queue.
  LaneIndex PickForQuota(PlaceIndex place, uint32_t salt) const;
  // Whether the place was made with lanes of the class: the sides of a split have no plain ones.
  bool HasKind(PlaceIndex place, LaneClass lane_class) const {
    return kind(place, lane_class).count > 0;
  }
  // An evictable BE lane without a launch, for the second part of a fused launch. Never `except`,
  // the first part's lane. kNoLane when there is none.
  LaneIndex PickIdleEvictable(PlaceIndex place, LaneIndex except) const;
  // Whether the place has such a lane at all, idle or not. A side of a split has one BE lane.
  bool HasOtherEvictable(PlaceIndex place, LaneIndex except) const;

  // A lane that hung: nothing picks it. Whether the caller asks the device for another one: false
  // if it was given up before, or if kMaxLaneReplacements were made.
  bool GiveUp(LaneIndex lane);
  // What the device is asked for in its place.
  LaneSpec SpecOf(LaneIndex lane) const;
  // The device has made it again; not evictable if its self-test found evictions blocked.
  void Install(LaneIndex lane, bool evictable, TimeNs now_ns);
  // The device makes none.
  void Remove(LaneIndex lane) { lanes_[static_cast<size_t>(lane)].to_replace = false; }
  // Whether its place has a lane of its class, or will have one. Without one, work of that class
  // would wait for ever.
  bool HasAnother(LaneIndex lane) const;

  Lane& lane(LaneIndex index) { return lanes_[static_cast<size_t>(index)]; }
  const Lane& lane(LaneIndex index) const { return lanes_[static_cast<size_t>(index)]; }
  absl::Span<const PlaceView> places() const { return named_.views(); }
  const PlaceView& place(PlaceIndex index) const { return named_.view(index); }
  absl::Span<const SplitView> splits() const { return named_.splits(); }
  // Evictable lanes on places that share an SM with `place`.
  uint64_t EvictableLanes(PlaceIndex place) const {
    return evictable_lanes_[static_cast<size_t>(place)].load(std::memory_order_acquire);
  }
  // Whether a queue with work in flight on the lane goes on in `place`: where that has more SMs. It
  // comes back to fewer when its work has ended, so that no burst drains on them.
  bool GoesOn(LaneIndex lane, PlaceIndex place) const {
    return HasPlace(place) && this->place(place).sms > this->place(this->lane(lane).spec.place).sms;
  }
  // Lanes whose self-test ever found evictions blocked; they are used as not evictable. The mask
  // has one bit a lane.
  int lanes_blocked() const { return std::popcount(blocked_lanes_); }
  uint64_t blocked_lanes() const { return blocked_lanes_; }
  bool HasPlace(PlaceIndex place) const { return named_.Has(place); }

 private:
  static constexpr int kClasses = 4;
  static constexpr int kLanesPerKind = 4;
  struct Kind {
    std::array<LaneIndex, kLanesPerKind> lanes{kNoLane, kNoLane, kNoLane, kNoLane};
    int count = 0;
    int quota_count = 0;  // behind those, for launches within quotas alone
  };
  Kind& kind(PlaceIndex place, LaneClass lane_class) {
    return kinds_[static_cast<size_t>(place) * kClasses + static_cast<size_t>(lane_class)];
  }
  const Kind& kind(PlaceIndex place, LaneClass lane_class) const {
    return kinds_[static_cast<size_t>(place) * kClasses + static_cast<size_t>(lane_class)];
  }
  absl::Status AddLanes(Device& device, LaneClass lane_class, int count);
  absl::Status AddQuotaLanes(Device& device);
  void Put(const MadeLane& made);
  void Use(LaneIndex index, bool evictable);
  // Calls `call` with each lane of the place, of the whole device aside.
  template <class Call>
  void ForEachLane(PlaceIndex place, Call&& call) const;
  bool IsEvictableBe(LaneIndex index) const;
  void IndexEvictableLanes();

  std::array<Lane, kMaxLanes> lanes_;
  std::array<Kind, static_cast<size_t>(kMaxPlaces) * kClasses> kinds_;
  Places named_;
  uint64_t blocked_lanes_ = 0;
  int replacements_ = 0;
  std::array<std::atomic<uint64_t>, kMaxPlaces> evictable_lanes_{};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LANES_H_
