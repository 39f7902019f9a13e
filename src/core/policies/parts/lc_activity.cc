// The LC work of a snapshot (lc_activity.h).

#include "src/core/policies/parts/lc_activity.h"

#include <algorithm>

namespace gpushare::core {
namespace {

uint64_t OverlappingPlaces(const Snapshot& snapshot, PlaceIndex place) {
  return snapshot.places[static_cast<size_t>(place)].overlaps;
}

}  // namespace

LcActivity FindLcActivity(const Snapshot& snapshot, const Plan& plan) {
  LcActivity activity;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    const LcAppView& app = snapshot.lc_apps[a];
    if (app.active_queries > 0 || app.tasks_in_flight > 0) activity.active = true;
    activity.open_at_ns =
        std::max(activity.open_at_ns, app.idle_since_ns + snapshot.return_hysteresis_ns);
    activity.routes |= OverlappingPlaces(snapshot, plan.routes[a].place);
  }
  activity.places = activity.routes;
  for (const HeadView& head : snapshot.heads) {
    if (head.app_class != AppClass::kLatencyCritical) break;  // LC heads come first
    activity.active = true;
    if (!head.confinable) activity.places |= OverlappingPlaces(snapshot, kWholeDevice);
  }
  for (const RunningView& running : snapshot.running) {
    if (running.task.app_class != AppClass::kLatencyCritical) continue;
    activity.active = true;
    for (const PartView& part : running.parts) {
      if (part.place >= 0) activity.places |= OverlappingPlaces(snapshot, part.place);
    }
  }
  return activity;
}

}  // namespace gpushare::core
