// Makes the lanes of places, and chooses among them. See lanes.h.

#include "src/core/state/lanes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

constexpr int kCopyDirections = 2;  // copy lanes take turns: to the device, to the host

LanePriority PriorityOf(LaneClass lane_class) {
  switch (lane_class) {
    case LaneClass::kLc:
      return LanePriority::kHigh;
    case LaneClass::kBe:
      return LanePriority::kLow;
    case LaneClass::kPlain:
    case LaneClass::kCopy:
      return LanePriority::kNormal;
  }
  return LanePriority::kNormal;
}

LaneSpec SpecFor(PlaceIndex place, LaneClass lane_class) {
  return {place, PriorityOf(lane_class), lane_class == LaneClass::kBe};
}

absl::StatusOr<MadeLane> MakeLane(Device& device, PlaceIndex place, LaneClass lane_class) {
  MadeLane made{.spec = SpecFor(place, lane_class), .lane_class = lane_class};
  const auto create = [&] { return device.CreateLane(made.spec); };
  absl::StatusOr<LaneIndex> index = CatchExhaustion(create);
  if (made.spec.evictable && absl::IsDeadlineExceeded(index.status())) {
    // Evictions on this lane are blocked: it takes only launches that nobody needs to evict.
    made.spec.evictable = false;
    index = CatchExhaustion(create);
  }
  if (!index.ok()) return index.status();
  if (*index < 0 || *index >= kMaxLanes) {
    return absl::InternalError(absl::StrCat("The device made lane ", *index,
                                            ", and the library has room for ", kMaxLanes, "."));
  }
  made.index = *index;
  return made;
}

}  // namespace

void Lanes::Put(const MadeLane& made) {
  Lane& put = lane(made.index);
  put.spec = made.spec;
  put.lane_class = made.lane_class;
  put.progress_ns = put.replaced_ns = 0;
  Use(made.index, made.spec.evictable);
}

void Lanes::Use(LaneIndex index, bool evictable) {
  Lane& used = lane(index);
  if (SpecOf(index).evictable && !evictable) blocked_lanes_ |= uint64_t{1} << index;
  // Submitters read the rest of the specification, which stays as long as the lane.
  used.spec.evictable = evictable;
  used.usable.store(true, std::memory_order_release);
}

absl::Status Lanes::AddLanes(Device& device, LaneClass lane_class, int count) {
  Kind& list = kind(kWholeDevice, lane_class);
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<MadeLane> made = MakeLane(device, kWholeDevice, lane_class);
    if (!made.ok()) return made.status();
    Put(*made);
    list.lanes[static_cast<size_t>(list.count++)] = made->index;
  }
  return absl::OkStatus();
}

absl::Status Lanes::AddQuotaLanes(Device& device) {
  static_assert(kQuotaLanes <= kLanesPerKind);
  static_assert(3 * kLanesPerKind + kQuotaLanes + 3 * kMaxSplits <= kMaxLanes);
  Kind& list = kind(kWholeDevice, LaneClass::kBe);
  while (list.count + list.quota_count < kQuotaLanes) {
    const absl::StatusOr<MadeLane> made = MakeLane(device, kWholeDevice, LaneClass::kBe);
    if (!made.ok()) return made.status();
    Put(*made);
    list.lanes[static_cast<size_t>(list.count + list.quota_count++)] = made->index;
  }
  return absl::OkStatus();
}

absl::Status Lanes::Open(Device& device, int splits_max) {
  named_.Name(device.capabilities(), splits_max, device.capabilities().virtual_time);
  for (const auto& [lane_class, count] :
       {std::pair{LaneClass::kLc, 4}, std::pair{LaneClass::kPlain, 4}, std::pair{LaneClass::kBe, 2},
        std::pair{LaneClass::kCopy, 4}}) {
    if (absl::Status status = AddLanes(device, lane_class, count); !status.ok()) return status;
  }
  if (absl::Status status = AddQuotaLanes(device); !status.ok()) return status;
  IndexEvictableLanes();
  return absl::OkStatus();
}

absl::Status Lanes::Create(Device& device, int splits_max) {
  if (absl::Status status = Open(device, splits_max); !status.ok()) return status;
  for (PlaceIndex place = kWholeDevice + 1; place < named_.count(); ++place) {
    const absl::StatusOr<MadePlace> made = MakeOnDevice(device, place, [] {});
    if (!made.ok()) return made.status();
    Publish(place, *made);
  }
  named_.KeepAll(true);
  return absl::OkStatus();
}

absl::StatusOr<MadePlace> Lanes::MakeOnDevice(Device& device, PlaceIndex place,
                                              absl::FunctionRef<void()> before) const {
  before();
  const auto create = [&] { return device.CreatePlace(place, named_.at(place).spec); };
  absl::Status status = CatchExhaustion(create);
  if (!status.ok()) return status;
  const bool lc_side = named_.TakesLc(place);
  MadePlace made;
  for (const LaneClass lane_class : {LaneClass::kLc, LaneClass::kBe}) {
    if (lane_class == LaneClass::kLc && !lc_side) continue;
    before();
    const absl::StatusOr<MadeLane> lane = MakeLane(device, place, lane_class);
    if (!lane.ok()) {
      status = lane.status();
      break;
    }
    made.lanes.Add(*lane);
  }
  if (status.ok()) return made;
  const absl::Status ended = CatchExhaustion([&] { return device.DestroyPlace(place); });
  if (ended.ok() || absl::IsDataLoss(status) || absl::IsUnavailable(status)) return status;
  return StatusOf(absl::StatusCode::kAborted, [&] {
    return absl::StrCat(status.message(), " What was made of it stays: ", ended.message());
  });
}

void Lanes::Publish(PlaceIndex place, const MadePlace& made) {
  for (const MadeLane& lane : made.lanes) {
    Put(lane);
    Kind& list = kind(place, lane.lane_class);
    list.lanes[static_cast<size_t>(list.count++)] = lane.index;
  }
  IndexEvictableLanes();
  named_.SetState(place, PlaceState::kReady);
}

template <class Call>
void Lanes::ForEachLane(PlaceIndex place, Call&& call) const {
  for (const LaneClass lane_class : {LaneClass::kLc, LaneClass::kBe}) {
    const Kind& list = kind(place, lane_class);
    for (int i = 0; i < list.count; ++i) call(list.lanes[static_cast<size_t>(i)]);
  }
}

bool Lanes::IsEmpty(PlaceIndex place) const {
  bool empty = true;
  ForEachLane(place, [&](LaneIndex index) {
    const Lane& own = lane(index);
    empty = empty && own.in_flight.load() == 0 && own.evictable.load() == 0 && own.parts == 0 &&
            own.fused_partners_pending.load() == 0 && !own.holds_fused_partner.load() &&
            !own.holds_segments.load() && !own.to_replace;
  });
  return empty;
}

void Lanes::SetUsable(PlaceIndex place, bool usable) {
  ForEachLane(place, [&](LaneIndex index) { lane(index).usable.store(usable); });
  IndexEvictableLanes();
}

void Lanes::Forget(PlaceIndex place) {
  ForEachLane(place, [&](LaneIndex index) { blocked_lanes_ &= ~(uint64_t{1} << index); });
  for (const LaneClass lane_class : {LaneClass::kLc, LaneClass::kBe}) {
    kind(place, lane_class) = Kind();
  }
}

void Lanes::IndexEvictableLanes() {
  for (size_t place = 0; place < places().size(); ++place) {
    uint64_t mask = 0;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = lanes_[i];
      if (!lane.usable.load() || !lane.spec.evictable) continue;
      if ((places()[place].overlaps >> lane.spec.place & 1) != 0) mask |= uint64_t{1} << i;
    }
    evictable_lanes_[place].store(mask, std::memory_order_release);
  }
}

LaneIndex Lanes::Pick(PlaceIndex place, LaneClass lane_class, uint32_t salt) const {
  const Kind& list = kind(place, lane_class);
  LaneIndex best = kNoLane;
  int32_t best_load = 0;
  for (int i = 0; i < list.count; ++i) {
    const LaneIndex index =
        list.lanes[(static_cast<size_t>(i) + salt) % static_cast<size_t>(list.count)];
    const Lane& candidate = lane(index);
    if (!candidate.usable.load(std::memory_order_relaxed)) continue;
    if (candidate.holds_fused_partner.load(std::memory_order_relaxed)) continue;
    if (candidate.holds_segments.load(std::memory_order_relaxed)) continue;
    // LC and plain work of one app stays on one lane, for stream order. A lane that still runs the
    // second part of a fused launch is avoided while another lane has none.
    if (lane_class == LaneClass::kLc || lane_class == LaneClass::kPlain) {
      if (candidate.fused_partners_pending.load(std::memory_order_relaxed) == 0) return index;
      if (best == kNoLane) best = index;
      continue;
    }
    const int32_t load = candidate.in_flight.load(std::memory_order_relaxed);
    if (best == kNoLane || load < best_load) {
      best = index;
      best_load = load;
    }
  }
  return best;
}

LaneIndex Lanes::PickForCopy(CopyDirection direction, bool leaves_second) const {
  const Kind& list = kind(kWholeDevice, LaneClass::kCopy);
  const int own = direction == CopyDirection::kDeviceToHost ? 1 : 0;
  const int end = leaves_second ? kCopyDirections : list.count;
  for (const int first : {own, 1 - own}) {
    LaneIndex best = kNoLane;
    for (int i = first; i < end; i += kCopyDirections) {
      const LaneIndex index = list.lanes[static_cast<size_t>(i)];
      if (!lane(index).usable.load(std::memory_order_relaxed)) continue;
      if (lane(index).holds_segments.load(std::memory_order_relaxed)) continue;
      const auto load = [this](LaneIndex of) {
        return lane(of).in_flight.load(std::memory_order_relaxed);
      };
      if (best == kNoLane || load(index) < load(best)) best = index;
    }
    if (best != kNoLane) return best;
  }
  return leaves_second ? PickForCopy(direction) : kNoLane;
}

LaneIndex Lanes::PickForYielding() const {
  const Kind& list = kind(kWholeDevice, LaneClass::kCopy);
  bool any = false;
  // The first ones are for the case that both others hung.
  for (int i = list.count - 1; i >= 0 && (i >= kCopyDirections || !any); --i) {
    const LaneIndex index = list.lanes[static_cast<size_t>(i)];
    const Lane& candidate = lane(index);
    if (!candidate.usable.load(std::memory_order_relaxed)) continue;
    any = true;
    if (candidate.in_flight.load(std::memory_order_acquire) == 0) return index;
  }
  return kNoLane;
}

LaneIndex Lanes::PickForQuota(PlaceIndex place, uint32_t salt) const {
  const Kind& list = kind(place, LaneClass::kBe);
  if (list.quota_count == 0) return Pick(place, LaneClass::kBe, salt);
  // The lanes of quotas first: launches that fill the device have no others.
  for (int i = list.count + list.quota_count - 1; i >= 0; --i) {
    const LaneIndex index = list.lanes[static_cast<size_t>(i)];
    const Lane& candidate = lane(index);
    if (!candidate.usable.load(std::memory_order_relaxed)) continue;
    if (candidate.holds_fused_partner.load(std::memory_order_relaxed)) continue;
    if (candidate.in_flight.load(std::memory_order_relaxed) == 0) return index;
  }
  return kNoLane;
}

bool Lanes::IsEvictableBe(LaneIndex index) const {
  const Lane& candidate = lane(index);
  return candidate.spec.evictable && candidate.usable.load(std::memory_order_relaxed);
}

LaneIndex Lanes::PickIdleEvictable(PlaceIndex place, LaneIndex except) const {
  const Kind& list = kind(place, LaneClass::kBe);
  for (int i = 0; i < list.count; ++i) {
    const LaneIndex index = list.lanes[static_cast<size_t>(i)];
    if (index != except && IsEvictableBe(index) &&
        lane(index).in_flight.load(std::memory_order_relaxed) == 0) {
      return index;
    }
  }
  return kNoLane;
}

bool Lanes::HasOtherEvictable(PlaceIndex place, LaneIndex except) const {
  const Kind& list = kind(place, LaneClass::kBe);
  for (int i = 0; i < list.count; ++i) {
    const LaneIndex index = list.lanes[static_cast<size_t>(i)];
    if (index != except && IsEvictableBe(index)) return true;
  }
  return false;
}

bool Lanes::GiveUp(LaneIndex index) {
  Lane& hung = lane(index);
  if (!hung.usable.exchange(false)) return false;
  named_.at(hung.spec.place).stays = true;
  IndexEvictableLanes();
  if (replacements_ == kMaxLaneReplacements) return false;
  ++replacements_;
  hung.to_replace = true;
  return true;
}

LaneSpec Lanes::SpecOf(LaneIndex index) const {
  return SpecFor(lane(index).spec.place, lane(index).lane_class);
}

void Lanes::Install(LaneIndex index, bool evictable, TimeNs now_ns) {
  lane(index).to_replace = false;
  lane(index).streams.fetch_add(1);
  lane(index).replaced_ns = lane(index).progress_ns = now_ns;
  Use(index, evictable);
  IndexEvictableLanes();
}

bool Lanes::HasAnother(LaneIndex index) const {
  const Kind& list = kind(lane(index).spec.place, lane(index).lane_class);
  return std::any_of(list.lanes.begin(), list.lanes.begin() + list.count, [this](LaneIndex other) {
    return lane(other).usable.load() || lane(other).to_replace;
  });
}

}  // namespace gpushare::core
