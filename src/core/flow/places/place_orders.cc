// Orders of places. See place_orders.h.

#include "src/core/flow/places/place_orders.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/tuning.h"
#include "src/core/checks/sm_limit.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/state/shared/route.h"

namespace gpushare::core {
namespace {

constexpr uint64_t BitOf(PlaceIndex place) { return uint64_t{1} << place; }

// The partitions of the plan in force, and the SMs beside them.
uint64_t PlacesOfPartitions(const Flow& flow) {
  if (!flow.PlanInForce()) return 0;
  uint64_t places = flow.partitions.rest == kNoPlace ? 0 : BitOf(flow.partitions.rest);
  for (const PartitionView& partition : flow.partitions.partitions) {
    places |= BitOf(partition.place);
  }
  return places;
}

// The homes of quotas, the split of the reservations and partitions: their owners asked for whole
// SMs.
uint64_t PlacesOfOwners(const Flow& flow) {
  const Places& named = flow.lanes.named();
  const int32_t sms = named.view(kWholeDevice).sms;
  const int32_t reserved = flow.lc_reserved_capsms.load(std::memory_order_relaxed);
  uint64_t places = PlacesOfPartitions(flow);
  if (reserved > 0) {
    if (const SplitView* const split = named.SplitWithin(sms - reserved); split != nullptr) {
      places |= BitOf(split->lc_place) | BitOf(split->be_place);
    }
  }
  for (const App* const app : flow.be_apps) {
    const int32_t quota = app->reserved_capsms.load(std::memory_order_relaxed);
    if (quota <= 0) continue;
    for (const bool evictable : {false, true}) {
      const int32_t limit = SmLimit({sms, sms - reserved}, quota, evictable);
      const SplitView* const split = named.SplitWithin(limit);
      if (split != nullptr) places |= BitOf(split->be_place);
    }
  }
  return places;
}

bool IsRouted(Flow& flow, PlaceIndex place) {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    const App& app = flow.tables.app_slot(slot);
    const uint32_t word = app.route.load(std::memory_order_seq_cst);
    if (app.id.load() != 0 && UnpackRoute(word).place == place) return true;
  }
  return false;
}

bool MayEnd(Flow& flow, PlaceIndex place) {
  const Places& named = flow.lanes.named();
  if (!named.IsMade(place) || named.at(place).stays || named.keeps_all()) return false;
  if (((named.wanted() | PlacesOfOwners(flow)) & BitOf(place)) != 0) return false;
  return flow.lanes.IsEmpty(place) && !IsRouted(flow, place) && flow.gate.InFlight() == 0;
}

// The place that was unused for longest, at least for `idle_ns`, and is not kept.
PlaceIndex LongestIdle(Flow& flow, TimeNs now_ns, int64_t idle_ns, uint64_t kept = 0) {
  Places& named = flow.lanes.named();
  PlaceIndex longest = kNoPlace;
  for (PlaceIndex place = kWholeDevice + 1; place < named.count(); ++place) {
    if (named.IsMade(place) && !flow.lanes.IsEmpty(place)) named.at(place).used_ns = now_ns;
    const TimeNs used_ns = named.at(place).used_ns;
    if (now_ns - used_ns < idle_ns || (kept & BitOf(place)) != 0) continue;
    if (!MayEnd(flow, place)) continue;
    if (longest == kNoPlace || used_ns < named.at(longest).used_ns) longest = place;
  }
  return longest;
}

void Report(Flow& flow, PlaceIndex place, const absl::Status& status) {
  NamedPlace& named = flow.lanes.named().at(place);
  if (std::exchange(named.refusal_reported, true)) return;
  try {
    flow.reports.push_back(absl::StrCat(
        "The device makes no place of ", flow.lanes.place(place).sms, " SMs (", status.message(),
        "). Plans do without it; further refusals of it are not logged."));
  } catch (const std::bad_alloc&) {  // for the sentence
  }
}

// LC work in flight entered the gate before these lanes could be picked, and none of its routes
// closes them: they are closed until it has left.
void CloseToBe(Flow& flow, PlaceIndex place) {
  flow.gate.WidenLanes(flow.lanes.EvictableLanes(place));
}

void NoteMade(Flow& flow, PlaceIndex place, const PlaceAnswer& answer) {
  Places& named = flow.lanes.named();
  if (answer.status.ok()) {
    flow.lanes.Publish(place, answer.made);
    CloseToBe(flow, place);
    named.at(place).refusal_reported = false;
    for (const MadeLane& lane : answer.made.lanes) {
      if (lane.lane_class == LaneClass::kBe && !lane.spec.evictable) {
        flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
      }
    }
    return;
  }
  named.Refuse(place, absl::IsAborted(answer.status) ? kNever : flow.now_ns + kPlaceAgainNs);
  // A launch or a completion says that the device is lost, and why.
  if (!IsDeviceLost(answer.status)) Report(flow, place, answer.status);
}

void NoteEnded(Flow& flow, PlaceIndex place, const PlaceAnswer& answer) {
  Places& named = flow.lanes.named();
  if (answer.status.ok()) {
    flow.lanes.Forget(place);
    named.SetState(place, PlaceState::kAbsent);
    return;
  }
  // It may be refused for a moment only, so it is asked again after another idle time.
  flow.lanes.SetUsable(place, true);
  CloseToBe(flow, place);
  named.SetState(place, PlaceState::kReady);
  named.at(place).used_ns = flow.now_ns;
}

// In the plan stage, where the device takes no time. Each place is ordered at most once or twice.
void CarryOutAtOnce(Flow& flow) {
  for (int left = 2 * kMaxPlaces; left > 0 && !flow.device_lost.load(); --left) {
    const bool dirty = flow.dirty;
    const PlaceOrder order = TakePlaceOrder(flow);
    if (order.place == kNoPlace) return;
    const PlaceAnswer answer = AskDevice(flow, order, [] {});
    NotePlaceAnswer(flow, order, answer);
    if (answer.status.ok()) flow.dirty = dirty;  // the plan at hand counts on the place
  }
}

}  // namespace

void AskForPlaces(Flow& flow) {
  Places& named = flow.lanes.named();
  Plan& plan = flow.buffers.plan;
  if (named.count() == 1) return;
  uint64_t wanted = plan.places_wanted | PlacesOfOwners(flow);
  const auto want = [&](PlaceIndex place) {
    if (named.Has(place)) wanted |= BitOf(place);
  };
  for (int i = 0; i < flow.lc_apps.size(); ++i) want(plan.routes[static_cast<size_t>(i)].place);
  for (const PlannedLaunch& launch : plan.launches) want(launch.place);
  named.Want(wanted & (BitOf(named.count()) - 1) & ~BitOf(kWholeDevice), flow.now_ns);
  if (named.at_once()) {
    CarryOutAtOnce(flow);
  } else if (named.NextToMake(flow.now_ns) != kNoPlace) {
    flow.places_asked.store(true, std::memory_order_relaxed);
  }
  for (int i = 0; i < flow.lc_apps.size(); ++i) {
    LcRoute& route = plan.routes[static_cast<size_t>(i)];
    if (!named.Has(route.place) || named.IsMade(route.place)) continue;
    route.place = kWholeDevice;
    route.waits_for_empty_sms = false;
  }
}

PlaceOrder TakePlaceOrder(Flow& flow) {
  Places& named = flow.lanes.named();
  if (flow.device_lost.load() || named.keeps_all()) return {};
  const TimeNs now_ns = flow.device->NowNs();
  const PlaceIndex make = named.NextToMake(now_ns);
  const bool room = named.live() < kLivePlacesMax;
  if (make != kNoPlace && room) {
    named.SetState(make, PlaceState::kMaking);
    return {make, false};
  }
  const PlaceIndex end =
      LongestIdle(flow, now_ns, make != kNoPlace ? 0 : flow.options.place_idle_ns);
  if (end == kNoPlace) return {};
  flow.lanes.SetUsable(end, false);
  named.SetState(end, PlaceState::kEnding);
  return {end, true};
}

PlaceAnswer AskDevice(Flow& flow, const PlaceOrder& order, absl::FunctionRef<void()> before) {
  PlaceAnswer answer;
  if (order.ends) {
    before();
    answer.status = CatchExhaustion([&] { return flow.device->DestroyPlace(order.place); });
    return answer;
  }
  const absl::StatusOr<MadePlace> made = flow.lanes.MakeOnDevice(*flow.device, order.place, before);
  answer.status = made.status();
  if (made.ok()) answer.made = *made;
  return answer;
}

void NotePlaceAnswer(Flow& flow, const PlaceOrder& order, const PlaceAnswer& answer) {
  flow.now_ns = flow.device->NowNs();
  flow.dirty = true;
  if (order.ends) return NoteEnded(flow, order.place, answer);
  NoteMade(flow, order.place, answer);
}

namespace {

// Ends idle places until there is room for one more. Places that are all kept have no bound.
absl::Status MakeRoom(Flow& flow, Mutex& tick_mutex, uint64_t kept) {
  Places& named = flow.lanes.named();
  for (int left = kMaxPlaces; left > 0; --left) {
    PlaceOrder order;
    {
      const MutexLock lock(&tick_mutex);
      if (named.keeps_all() || named.live() < kLivePlacesMax) return absl::OkStatus();
      order = {LongestIdle(flow, flow.device->NowNs(), 0, kept), true};
      if (order.place == kNoPlace) break;
      flow.lanes.SetUsable(order.place, false);
      named.SetState(order.place, PlaceState::kEnding);
    }
    const PlaceAnswer answer = AskDevice(flow, order, [] {});
    const MutexLock lock(&tick_mutex);
    NotePlaceAnswer(flow, order, answer);
    if (!answer.status.ok()) return answer.status;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "The runtime has ", kLivePlacesMax, " places of SMs, its limit, and none is idle. End the ",
      "plan in force, or quotas, or wait for a moment without LC work, and plan again."));
}

}  // namespace

absl::Status MakePlaceNow(Flow& flow, Mutex& tick_mutex, PlaceIndex place,
                          absl::Span<const PlaceIndex> kept) {
  Places& named = flow.lanes.named();
  {
    const MutexLock lock(&tick_mutex);
    if (named.IsMade(place)) {
      named.at(place).used_ns = flow.device->NowNs();
      return absl::OkStatus();
    }
    // Every graph of those keepers was made in the places of that time.
    if (named.keepers() > (flow.options.places == PlacesMode::kEager ? 1 : 0)) {
      return absl::FailedPreconditionError(
          "Graphs are registered that are captured or measured in each place, and a new partition "
          "would lack them; plan the partitions first.");
    }
  }
  uint64_t kept_bits = 0;
  for (const PlaceIndex other : kept) kept_bits |= BitOf(other);
  if (absl::Status status = MakeRoom(flow, tick_mutex, kept_bits); !status.ok()) return status;
  {
    const MutexLock lock(&tick_mutex);
    named.SetState(place, PlaceState::kMaking);
  }
  const PlaceAnswer answer = AskDevice(flow, {place, false}, [] {});
  const MutexLock lock(&tick_mutex);
  NotePlaceAnswer(flow, {place, false}, answer);
  return answer.status;
}

void MakeEveryPlace(Flow& flow, Mutex& tick_mutex) {
  Places& named = flow.lanes.named();
  for (PlaceIndex place = kWholeDevice + 1; place < named.count(); ++place) {
    const PlaceOrder order = {place, false};
    {
      const MutexLock lock(&tick_mutex);
      if (named.at(place).state != PlaceState::kAbsent || flow.device_lost.load()) continue;
      named.SetState(place, PlaceState::kMaking);
    }
    const PlaceAnswer answer = AskDevice(flow, order, [] {});
    const MutexLock lock(&tick_mutex);
    NotePlaceAnswer(flow, order, answer);
  }
}

}  // namespace gpushare::core
