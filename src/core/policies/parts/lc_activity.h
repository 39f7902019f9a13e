// LC work at the time of a plan: whether a query is active, how long LC's places stay closed after
// the last one, and which places its routes and running tasks overlap.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_LC_ACTIVITY_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_LC_ACTIVITY_H_

#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

struct LcActivity {
  bool active = false;    // some LC app has a query, a head or a launch
  TimeNs open_at_ns = 0;  // when its places open for BE, if it is not active
  uint64_t routes = 0;    // places that overlap a route
  uint64_t places = 0;    // places that overlap a route or LC work on the device
};

// After PublishRoutes.
LcActivity FindLcActivity(const Snapshot& snapshot, const Plan& plan);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_LC_ACTIVITY_H_
