// Routes and LC heads (lc_first.h).

#include "src/core/policies/parts/lc_first.h"

#include <algorithm>
#include <limits>

#include "src/core/policies/parts/launch_form.h"

namespace gpushare::core {

void PublishRoutes(const Snapshot& snapshot, const LcRoute& route, Plan& plan) {
  int32_t highest = std::numeric_limits<int32_t>::min();
  for (const LcAppView& app : snapshot.lc_apps) highest = std::max(highest, app.priority);
  // A side of a split has no plain lane.
  const bool ranks = route.lane_class == LaneClass::kLc && route.place == kWholeDevice;
  for (size_t app = 0; app < snapshot.lc_apps.size(); ++app) {
    plan.routes[app] = route;
    const bool below = ranks && snapshot.lc_apps[app].priority < highest;
    if (below) plan.routes[app].lane_class = LaneClass::kPlain;
  }
}

int64_t LaunchLcHeads(const Snapshot& snapshot, Plan& plan) {
  int64_t issued_ns = 0;
  for (const HeadView& head : snapshot.heads) {
    if (head.app_class != AppClass::kLatencyCritical) break;  // LC heads come first
    const LcRoute& route = plan.routes[static_cast<size_t>(head.app)];
    PlannedLaunch launch;
    launch.task = head.task;
    launch.count = head.ready_count;
    launch.form = OrdinaryForm(head.kind);
    launch.place = head.confinable ? route.place : kWholeDevice;
    launch.lane_class = route.lane_class;
    launch.reason = Reason::kLcFirst;
    if (!plan.launches.TryAdd(launch)) break;
    issued_ns += head.remaining.duration_ns * head.ready_count;
  }
  return issued_ns;
}

}  // namespace gpushare::core
