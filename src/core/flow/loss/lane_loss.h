// Part of stage 6, complete: lanes that are given up, and made again by the device.
//
//   TimeOutTask    ends one task with kTimedOut
//   GiveUpLane     in Tick: ends the lane's tasks with kTimedOut, lists it in Flow::lost_lanes
//   ReplaceLanes   after Tick, with no lock held, because it calls the driver for milliseconds
//
// If the device makes no lane and the place has no other one of its class, the device is lost: work
// of that class would wait for ever. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LOSS_LANE_LOSS_H_
#define GPUSHARE_SRC_CORE_FLOW_LOSS_LANE_LOSS_H_

#include "absl/types/span.h"
#include "src/core/base/mutex.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// `lane`: where its hung launch is. Its launches on other lanes are evicted.
void TimeOutTask(Flow& flow, Task& task, LaneIndex lane);

void GiveUpLane(Flow& flow, LaneIndex lane);

// Takes `tick_mutex` to use a lane that the device has made.
void ReplaceLanes(Flow& flow, absl::Span<const LaneIndex> lost, Mutex& tick_mutex)
    ABSL_LOCKS_EXCLUDED(tick_mutex);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LOSS_LANE_LOSS_H_
