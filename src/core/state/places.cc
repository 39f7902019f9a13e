// Names places and splits, and follows what the device has of them. See places.h.

#include "src/core/state/places.h"

#include <algorithm>
#include <bit>

namespace gpushare::core {
namespace {

bool ShareAnSm(const PlaceSpec& a, const PlaceSpec& b) {
  const bool groups_meet =
      a.first_group < b.first_group + b.groups && b.first_group < a.first_group + a.groups;
  return groups_meet || (a.with_remainder && b.with_remainder);
}

}  // namespace

PlaceIndex Places::Add(const PlaceSpec& spec, int32_t sms) {
  const PlaceIndex place = count();
  places_.push_back({.spec = spec});
  views_[static_cast<size_t>(place)] = {.sms = sms, .overlaps = 1, .ready = at_once_};
  count_.store(place + 1, std::memory_order_release);
  return place;
}

void Places::FindOverlaps() {
  for (size_t a = 0; a < places_.size(); ++a) {
    uint64_t overlaps = 0;
    for (size_t b = 0; b < places_.size(); ++b) {
      if (ShareAnSm(places_[a].spec, places_[b].spec)) overlaps |= uint64_t{1} << b;
    }
    views_[a].overlaps = overlaps;
  }
}

PlaceIndex Places::FindSet(const PlaceSpec& spec) const {
  for (PlaceIndex place = 0; place < count(); ++place) {
    const PlaceSpec& named = at(place).spec;
    if (named.first_group == spec.first_group && named.groups == spec.groups &&
        named.with_remainder == spec.with_remainder && at(place).takes_lc) {
      return place;
    }
  }
  return kNoPlace;
}

PlaceIndex Places::NameSet(const PlaceSpec& spec, int32_t sms) {
  const PlaceIndex named = FindSet(spec);
  if (named != kNoPlace) return named;
  if (count() == kMaxPlaces) return kNoPlace;
  const PlaceIndex place = Add(spec, sms);
  at(place).takes_lc = true;
  FindOverlaps();
  return place;
}

void Places::Name(const DeviceCapabilities& capabilities, int splits_max, bool at_once) {
  const DeviceProfile& profile = capabilities.profile;
  const int groups = profile.Groups();
  at_once_ = at_once;
  places_.reserve(kMaxPlaces);
  Add({0, groups, true}, profile.sm_count);
  SetState(kWholeDevice, PlaceState::kReady);
  if (!capabilities.partitions) return;
  splits_max = std::min(splits_max, kMaxSplits);
  // The SMs that whole groups leave over go to one side, and may be a side by themselves.
  const bool left_over = profile.Remainder() > 0;
  const bool for_lc = profile.remainder_for_lc;
  const int lc_groups_max = left_over && !for_lc ? groups : groups - 1;
  // With fewer splits than sizes the larger LC sides are the useful ones: skip from the front.
  const int first = std::max(left_over && for_lc ? 0 : 1, lc_groups_max + 1 - splits_max);
  for (int lc_groups = first; lc_groups <= lc_groups_max; ++lc_groups) {
    SplitView split;
    split.lc_sms = lc_groups * profile.sm_granularity + (for_lc ? profile.Remainder() : 0);
    split.be_sms = profile.sm_count - split.lc_sms;
    split.lc_place = Add({0, lc_groups, for_lc}, split.lc_sms);
    at(split.lc_place).takes_lc = true;
    split.be_place = Add({lc_groups, groups - lc_groups, !for_lc}, split.be_sms);
    splits_.push_back(split);
  }
  FindOverlaps();
}

const SplitView* Places::SplitWithin(int32_t sms) const {
  const SplitView* best = nullptr;
  for (const SplitView& split : splits_) {
    if (split.be_sms <= sms && (best == nullptr || split.be_sms > best->be_sms)) best = &split;
  }
  return best;
}

void Places::Want(uint64_t places, TimeNs now_ns) {
  wanted_ = places;
  for (uint64_t bits = places; bits != 0; bits &= bits - 1)
    at(std::countr_zero(bits)).used_ns = now_ns;
}

PlaceIndex Places::NextToMake(TimeNs now_ns) const {
  if (keeps_all()) return kNoPlace;
  for (uint64_t bits = wanted_; bits != 0; bits &= bits - 1) {
    const PlaceIndex place = std::countr_zero(bits);
    if (at(place).state == PlaceState::kAbsent && now_ns >= at(place).not_before_ns) return place;
  }
  return kNoPlace;
}

int Places::live() const {
  return static_cast<int>(
      std::count_if(places_.begin() + 1, places_.end(),
                    [](const NamedPlace& place) { return place.state != PlaceState::kAbsent; }));
}

void Places::SetState(PlaceIndex place, PlaceState state) {
  at(place).state = state;
  views_[static_cast<size_t>(place)].ready = state == PlaceState::kReady || at_once_;
}

void Places::Refuse(PlaceIndex place, TimeNs not_before_ns) {
  at(place).state = PlaceState::kAbsent;
  at(place).not_before_ns = not_before_ns;
  views_[static_cast<size_t>(place)].ready = false;
  any_refused_ = true;
}

void Places::ForgetRefusals(TimeNs now_ns) {
  if (!any_refused_) return;
  any_refused_ = false;
  for (PlaceIndex place = 0; place < count(); ++place) {
    if (at(place).not_before_ns == 0) continue;
    if (now_ns < at(place).not_before_ns) {
      any_refused_ = true;
      continue;
    }
    at(place).not_before_ns = 0;
    SetState(place, at(place).state);
  }
}

}  // namespace gpushare::core
