// The LC fast path: the submitter launches, without waiting for the scheduler.
//
// One atomic enters the gate, the epochs of the lanes that must leave are raised, the task is
// launched behind the leaving BE work, and a started-record tells the flow. Where to and what must
// leave is the route that the last plan published. Safety: lc_gate.h. Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_FAST_PATH_H_
#define GPUSHARE_SRC_CORE_FLOW_FAST_PATH_H_

#include "src/core/flow/launch.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// A route as one word: place + 1, lane class and flags.
constexpr uint32_t PackRoute(const LcRoute& route) {
  return static_cast<uint32_t>(route.place + 1) | static_cast<uint32_t>(route.lane_class) << 8 |
         static_cast<uint32_t>(route.fast_path) << 16 |
         static_cast<uint32_t>(route.evict_overlapping) << 17;
}
constexpr LcRoute UnpackRoute(uint32_t word) {
  LcRoute route;
  route.place = static_cast<PlaceIndex>(word & 0xff) - 1;
  route.lane_class = static_cast<LaneClass>(word >> 8 & 0xff);
  route.fast_path = (word >> 16 & 1) != 0;
  route.evict_overlapping = (word >> 17 & 1) != 0;
  return route;
}

// Tells every evictable launch on lanes that share an SM with `place` to leave. The caller has
// entered the gate.
void EvictOverlapping(Flow& flow, PlaceIndex place, Reason reason);

// Writes the lane's eviction word so that all but `workers_to_keep` of its workers leave.
void EvictLane(Flow& flow, LaneIndex lane, int32_t workers_to_keep, TicketId task, Reason reason);

enum class FastPathResult : uint8_t {
  kNotTaken = 0,  // post it in the ring
  kLaunched = 1,
  kFailed = 2,  // the device refused it; the flow completes it
};
FastPathResult TryFastPath(Flow& flow, Task& task);

// Launches parts[0] of a task that its submitter has prepared; the lane's order is the queue's.
FastPathResult LaunchPart(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_FAST_PATH_H_
