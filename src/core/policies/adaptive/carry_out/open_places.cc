// Which places there are, and what lies on them (open_places.h).

#include "src/core/policies/adaptive/carry_out/open_places.h"

#include <algorithm>

#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/fewer_workers.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {

OpenPlaces::OpenPlaces(const Snapshot& snapshot, const Arrangement& arrangement,
                       const LcActivity& lc)
    : snapshot_(snapshot),
      lc_(lc),
      is_split_(arrangement.split >= 0),
      quotas_(snapshot, arrangement.split) {
  if (is_split_) {
    const SplitView& split = snapshot.splits[static_cast<size_t>(arrangement.split)];
    AddPlace(split.be_place, PlaceRole::kBeSide);
    AddPlace(split.lc_place, PlaceRole::kLcSide);
    AddPlace(kWholeDevice, PlaceRole::kUnconfined);
  } else {
    AddPlace(kWholeDevice, PlaceRole::kWhole);
  }
  if (quotas_.any()) AddHomes();
  CountLive();
  any_be_ = any_be_ || std::any_of(snapshot.heads.begin(), snapshot.heads.end(), IsBeCompute);
}

void OpenPlaces::AddPlace(PlaceIndex index, PlaceRole role) {
  BePlace& place = places_[count_++];
  place.index = index;
  place.role = role;
  place.overlaps_lc = (lc_.places & PlaceBit(index)) != 0;
  if (!place.overlaps_lc) return;
  if (lc_.active) {
    place.closed = Reason::kHoldLcActive;
  } else if (snapshot_.now_ns < lc_.open_at_ns) {
    place.closed = Reason::kHoldHysteresis;
  }
}

// Each home once, where it is no side of the arrangement.
void OpenPlaces::AddHomes() {
  const auto add = [&](const HeadView& task) {
    if (!IsBeCompute(task) || !quotas_.IsConfined(task)) return;
    const PlaceIndex home = quotas_.HomeOf(task);
    const auto is_home = [&](const BePlace& place) { return place.index == home; };
    if (std::any_of(all().begin(), all().end(), is_home)) return;
    if (count_ < places_.size()) AddPlace(home, PlaceRole::kHome);
  };
  for (const RunningView& running : snapshot_.running) add(running.task);
  for (const HeadView& head : snapshot_.heads) add(head);
}

void OpenPlaces::CountLive() {
  for (const RunningView& running : snapshot_.running) {
    if (!IsBeCompute(running.task)) continue;
    any_be_ = true;
    if (running.draining && running.task.followed)
      load_.draining |= uint64_t{1} << running.task.app;
    const Delay delay = DelayOfRunning(running);
    load_.delay.eviction_ns = std::max(load_.delay.eviction_ns, delay.eviction_ns);
    load_.delay.uncuttable_ns = SumNs(load_.delay.uncuttable_ns, delay.uncuttable_ns);
    for (const PartView& part : running.parts) {
      if (part.place >= 0) AddPart(running.task, part);
    }
  }
}

// What its parts on LC's places keep a query waiting for. They run at the same time.
Delay OpenPlaces::DelayOfRunning(const RunningView& running) const {
  Delay delay;
  for (const PartView& part : running.parts) {
    if (part.place < 0 || (lc_.places & PlaceBit(part.place)) == 0) continue;
    const Width width = WidthOfPart(snapshot_, running.task, part);
    const int64_t remaining_ns = RemainingOn(snapshot_, running.task, part.place, width);
    if (ClaimsBlockTasks(part.form) && snapshot_.eviction_available) {
      const int64_t eviction_ns =
          EvictionOf(running.task.eviction_ns, width, snapshot_.eviction_write_ns);
      delay.eviction_ns = std::max(delay.eviction_ns, std::min(remaining_ns, eviction_ns));
    } else {
      delay.uncuttable_ns = std::max(delay.uncuttable_ns, remaining_ns);
    }
  }
  return delay;
}

void OpenPlaces::AddPart(const HeadView& task, const PartView& part) {
  if (part.evicting) {
    if (part.form != Form::kSegments) return;
    load_.leaving |= snapshot_.places[static_cast<size_t>(part.place)].overlaps;
    return;
  }
  for (BePlace& place : all()) {
    if (place.index == part.place) AddLive(task, place, WidthOfPart(snapshot_, task, part));
  }
}

// Beside another task its block tasks take longer than by themselves, but not longer than with all
// workers: `slowest_ns` is of these.
void OpenPlaces::AddLive(const HeadView& task, BePlace& place, const Width& width) {
  place.within_quotas = place.within_quotas && quotas_.any() && quotas_.BoundsWorkers(task);
  if (place.live < kQuotaLanes) {
    place.queues[static_cast<size_t>(place.live)] = task.queue;
    place.next[static_cast<size_t>(place.live)] = task.followed ? task.app : -1;
  }
  ++place.live;
  live_queues_ |= QueueBit(task.queue);
  if (CanBeEvicted(snapshot_, task)) {
    Evictions& evictions = place.evictions;
    evictions.sum_ns = SumNs(evictions.sum_ns, BlockingOn(snapshot_, task, place.index, width));
    evictions.slowest_ns =
        std::max(evictions.slowest_ns, LeavesWithin(snapshot_, task, place.index));
    evictions.in_turn_ns =
        SumNs(evictions.in_turn_ns, LeavesWithin(snapshot_, task, place.index, width));
  }
  const uint64_t shared = snapshot_.places[static_cast<size_t>(place.index)].overlaps;
  load_.live |= shared;
  if (RunsAlone(task)) load_.alone |= shared;
}

void OpenPlaces::Take(const HeadView& task, BePlace& place, const Width& chosen) {
  // Beside other work an eviction takes as long as that of all workers.
  const bool shares_sms = (load_.live & PlaceBit(place.index)) != 0;
  const Width width = shares_sms ? Width() : chosen;
  quotas_.Take(task, place.index);
  AddLive(task, place, width);
  if (!place.overlaps_lc) return;
  load_.delay = load_.DelayWith(BlockingOn(snapshot_, task, place.index, width),
                                CanBeEvicted(snapshot_, task));
}

Evictions OpenPlaces::EvictionsOn(const BePlace& place) const {
  const uint64_t shared = snapshot_.places[static_cast<size_t>(place.index)].overlaps;
  Evictions all_of;
  for (const BePlace& other : all()) {
    if (!other.overlaps_lc || (shared & PlaceBit(other.index)) == 0) continue;
    all_of.sum_ns = SumNs(all_of.sum_ns, other.evictions.sum_ns);
    all_of.in_turn_ns = SumNs(all_of.in_turn_ns, other.evictions.in_turn_ns);
    all_of.slowest_ns = std::max(all_of.slowest_ns, other.evictions.slowest_ns);
  }
  return all_of;
}

const BePlace* OpenPlaces::HomeOf(const HeadView& task) const {
  const PlaceIndex home = quotas_.HomeOf(task);
  for (const BePlace& place : all()) {
    if (place.index == home) return &place;
  }
  return nullptr;
}

}  // namespace gpushare::core
