// Creation of places, splits and lanes, and the choice of a lane. See lanes.h.

#include "src/core/state/lanes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

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

bool ShareAnSm(const PlaceSpec& a, const PlaceSpec& b) {
  const bool groups_meet =
      a.first_group < b.first_group + b.groups && b.first_group < a.first_group + a.groups;
  return groups_meet || (a.with_remainder && b.with_remainder);
}

}  // namespace

absl::StatusOr<LaneIndex> Lanes::AddLane(Device& device, const LaneSpec& spec,
                                         LaneClass lane_class) {
  LaneSpec granted = spec;
  const auto create = [&] { return device.CreateLane(granted); };
  absl::StatusOr<LaneIndex> index = CatchExhaustion(create);
  if (granted.evictable && absl::IsDeadlineExceeded(index.status())) {
    // Evictions on this lane are blocked: it takes only launches that nobody needs to evict.
    granted.evictable = false;
    index = CatchExhaustion(create);
  }
  if (!index.ok()) return index.status();
  if (*index < 0 || *index >= kMaxLanes) {
    return absl::InternalError(absl::StrCat("The device made lane ", *index,
                                            ", and the library has room for ", kMaxLanes, "."));
  }
  lane(*index).spec = spec;
  lane(*index).lane_class = lane_class;
  Use(*index, granted.evictable);
  return *index;
}

void Lanes::Use(LaneIndex index, bool evictable) {
  Lane& used = lane(index);
  if (SpecOf(index).evictable && !evictable) blocked_lanes_ |= uint64_t{1} << index;
  // Submitters read the rest of the specification, which never changes.
  used.spec.evictable = evictable;
  used.usable.store(true, std::memory_order_release);
}

absl::Status Lanes::AddLanes(Device& device, PlaceIndex place, LaneClass lane_class, int count) {
  Kind& list = kind(place, lane_class);
  for (int i = 0; i < count; ++i) {
    const LaneSpec spec{place, PriorityOf(lane_class), lane_class == LaneClass::kBe};
    absl::StatusOr<LaneIndex> index = AddLane(device, spec, lane_class);
    if (!index.ok()) return index.status();
    list.lanes[static_cast<size_t>(list.count++)] = *index;
  }
  return absl::OkStatus();
}

absl::Status Lanes::AddQuotaLanes(Device& device) {
  static_assert(kQuotaLanes <= kLanesPerKind);
  static_assert(3 * kLanesPerKind + kQuotaLanes + 3 * kMaxSplits <= kMaxLanes);
  Kind& list = kind(kWholeDevice, LaneClass::kBe);
  const LaneSpec spec{kWholeDevice, PriorityOf(LaneClass::kBe), true};
  while (list.count + list.quota_count < kQuotaLanes) {
    absl::StatusOr<LaneIndex> index = AddLane(device, spec, LaneClass::kBe);
    if (!index.ok()) return index.status();
    list.lanes[static_cast<size_t>(list.count + list.quota_count++)] = *index;
  }
  return absl::OkStatus();
}

absl::Status Lanes::Create(Device& device, int splits_max) {
  const DeviceProfile& profile = device.capabilities().profile;
  const int groups = profile.Groups();
  places_.push_back({profile.sm_count, 1});
  place_specs_.push_back({0, groups, true});
  for (const auto& [lane_class, count] :
       {std::pair{LaneClass::kLc, 4}, std::pair{LaneClass::kPlain, 4}, std::pair{LaneClass::kBe, 2},
        std::pair{LaneClass::kCopy, 4}}) {
    if (absl::Status status = AddLanes(device, kWholeDevice, lane_class, count); !status.ok()) {
      return status;
    }
  }
  if (absl::Status status = AddQuotaLanes(device); !status.ok()) return status;
  if (device.capabilities().partitions) {
    if (absl::Status status = AddSplits(device, std::min(splits_max, kMaxSplits)); !status.ok()) {
      return status;
    }
  }
  IndexEvictableLanes();
  return absl::OkStatus();
}

absl::Status Lanes::AddSplits(Device& device, int splits_max) {
  const DeviceProfile& profile = device.capabilities().profile;
  const int groups = profile.Groups();
  // The SMs that whole groups leave over go to one side, and may be a side by themselves.
  const bool left_over = profile.Remainder() > 0;
  const bool for_lc = profile.remainder_for_lc;
  const int lc_groups_max = left_over && !for_lc ? groups : groups - 1;
  for (int lc_groups = left_over && for_lc ? 0 : 1; lc_groups <= lc_groups_max; ++lc_groups) {
    if (static_cast<int>(splits_.size()) >= splits_max) break;
    // With fewer splits than sizes the larger LC sides are the useful ones: skip from the front.
    if (lc_groups_max + 1 - lc_groups > splits_max) continue;
    const PlaceSpec lc{0, lc_groups, for_lc};
    const PlaceSpec be{lc_groups, groups - lc_groups, !for_lc};
    SplitView split;
    split.lc_sms = lc_groups * profile.sm_granularity + (for_lc ? profile.Remainder() : 0);
    split.be_sms = profile.sm_count - split.lc_sms;
    for (const auto& [spec, sms, place] : {std::tuple{lc, split.lc_sms, &split.lc_place},
                                           std::tuple{be, split.be_sms, &split.be_place}}) {
      *place = static_cast<PlaceIndex>(places_.size());
      if (absl::Status status = device.CreatePlace(*place, spec); !status.ok()) return status;
      places_.push_back({sms, 0});
      place_specs_.push_back(spec);
    }
    for (const auto& [place, lane_class] :
         {std::pair{split.lc_place, LaneClass::kLc}, std::pair{split.lc_place, LaneClass::kBe},
          std::pair{split.be_place, LaneClass::kBe}}) {
      if (absl::Status status = AddLanes(device, place, lane_class, 1); !status.ok()) return status;
    }
    splits_.push_back(split);
  }
  for (size_t a = 0; a < places_.size(); ++a) {
    places_[a].overlaps = 0;
    for (size_t b = 0; b < places_.size(); ++b) {
      if (ShareAnSm(place_specs_[a], place_specs_[b])) places_[a].overlaps |= uint64_t{1} << b;
    }
  }
  return absl::OkStatus();
}

void Lanes::IndexEvictableLanes() {
  for (size_t place = 0; place < places_.size(); ++place) {
    uint64_t mask = 0;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = lanes_[i];
      if (!lane.usable.load() || !lane.spec.evictable) continue;
      if ((places_[place].overlaps >> lane.spec.place & 1) != 0) mask |= uint64_t{1} << i;
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

LaneIndex Lanes::PickForCopy(CopyDirection direction) const {
  const Kind& list = kind(kWholeDevice, LaneClass::kCopy);
  const int own = direction == CopyDirection::kDeviceToHost ? 1 : 0;
  for (const int first : {own, 1 - own}) {
    LaneIndex best = kNoLane;
    for (int i = first; i < list.count; i += 2) {
      const LaneIndex index = list.lanes[static_cast<size_t>(i)];
      if (!lane(index).usable.load(std::memory_order_relaxed)) continue;
      const auto load = [this](LaneIndex of) {
        return lane(of).in_flight.load(std::memory_order_relaxed);
      };
      if (best == kNoLane || load(index) < load(best)) best = index;
    }
    if (best != kNoLane) return best;
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
  IndexEvictableLanes();
  if (replacements_ == kMaxLaneReplacements) return false;
  ++replacements_;
  hung.to_replace = true;
  return true;
}

LaneSpec Lanes::SpecOf(LaneIndex index) const {
  const Lane& given_up = lane(index);
  return {given_up.spec.place, PriorityOf(given_up.lane_class),
          given_up.lane_class == LaneClass::kBe};
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
