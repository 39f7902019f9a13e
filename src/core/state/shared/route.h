// One LC app's route packed in one atomic word. The launch stage publishes it; submitters read it.
// Threads: pure functions, any.

#ifndef GPUSHARE_SRC_CORE_STATE_SHARED_ROUTE_H_
#define GPUSHARE_SRC_CORE_STATE_SHARED_ROUTE_H_

#include <cstdint>

#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Place + 1, lane class and flags. No route packs to 0, so 0 means: none published.
constexpr uint32_t PackRoute(const LcRoute& route) {
  return static_cast<uint32_t>(route.place + 1) | static_cast<uint32_t>(route.lane_class) << 8 |
         static_cast<uint32_t>(route.fast_path) << 16 |
         static_cast<uint32_t>(route.evict_overlapping) << 17 |
         static_cast<uint32_t>(route.waits_for_empty_sms) << 18 |
         static_cast<uint32_t>(route.cuts_graphs) << 19;
}
constexpr LcRoute UnpackRoute(uint32_t word) {
  LcRoute route;
  route.place = static_cast<PlaceIndex>(word & 0xff) - 1;
  route.lane_class = static_cast<LaneClass>(word >> 8 & 0xff);
  route.fast_path = (word >> 16 & 1) != 0;
  route.evict_overlapping = (word >> 17 & 1) != 0;
  route.waits_for_empty_sms = (word >> 18 & 1) != 0;
  route.cuts_graphs = (word >> 19 & 1) != 0;
  return route;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_SHARED_ROUTE_H_
