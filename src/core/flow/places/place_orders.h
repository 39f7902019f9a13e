// Which places the device is asked to make or end, and what its answers change.
//
// A plan names places: its routes, its launches, and what its arrangement has. AskForPlaces notes
// them. A place that is named and not made is ordered; one that has not been used for place_idle_ns
// is ordered to end, or earlier where another needs its lanes. An order runs as
//
//   order = TakePlaceOrder(flow)         under the lock of Tick
//   answer = AskDevice(flow, order)      without it: this takes milliseconds on a GPU
//   NotePlaceAnswer(flow, order, answer) under the lock again
//
// Where the device makes places at once (virtual time), the plan stage does all three, so that a
// plan never waits for a place. Elsewhere a thread does (place_maker.h).
//
// Invariants: no place ends that the last plan, a published route, a reservation or a quota names,
// or that a launch is on. The gate is empty when a place begins to end: a submitter that still acts
// on an older route is inside it (shared/lc_gate.h).
// Threads: as the three steps say.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLACES_PLACE_ORDERS_H_
#define GPUSHARE_SRC_CORE_FLOW_PLACES_PLACE_ORDERS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/base/mutex.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Notes what the plan names, and sends routes to the whole device whose place is not made.
void AskForPlaces(Flow& flow);

struct PlaceOrder {
  PlaceIndex place = kNoPlace;  // kNoPlace: there is nothing to do
  bool ends = false;
};
struct PlaceAnswer {
  absl::Status status;
  MadePlace made;
};

PlaceOrder TakePlaceOrder(Flow& flow);
// Calls `before` before each call of the device.
PlaceAnswer AskDevice(Flow& flow, const PlaceOrder& order, absl::FunctionRef<void()> before);
void NotePlaceAnswer(Flow& flow, const PlaceOrder& order, const PlaceAnswer& answer);

// Makes one place in the caller's thread, which holds the lock of registration. Where there are
// kLivePlacesMax it ends an idle place first, but none of `kept`. It does not wait for a moment
// without LC work, as PlaceMaker does: making a place then delays LC launches by milliseconds.
// FAILED_PRECONDITION: registered graphs would lack it. RESOURCE_EXHAUSTED: there are as many
// places, and none is idle. Else what the device refused.
absl::Status MakePlaceNow(Flow& flow, Mutex& tick_mutex, PlaceIndex place,
                          absl::Span<const PlaceIndex> kept) ABSL_LOCKS_EXCLUDED(tick_mutex);

// Makes every place that is absent, for a graph that is about to be captured or measured in all of
// them. Those that the device refuses stay absent. The caller holds the lock of registration.
void MakeEveryPlace(Flow& flow, Mutex& tick_mutex) ABSL_LOCKS_EXCLUDED(tick_mutex);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLACES_PLACE_ORDERS_H_
