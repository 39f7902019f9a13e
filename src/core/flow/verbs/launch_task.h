// The verb "launch" of one task by itself, and the steps that it shares with a fused launch.
//
//   PickLane, SizePart, HasCounter     take what the launch needs
//   EnterGate                          LC only: closes its route's lanes to BE launches
//   LaunchInQuery                      hands the request to the device
//   RecordLaunched                     moves the task from its queue to the running tables
//
// If something is missing, nothing was launched and the task waits for the next plan; it keeps a
// claim counter that it took. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_LAUNCH_TASK_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_LAUNCH_TASK_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Whether the LC task is a graph that runs in segments, because its app yields
// (flow/planning/yields.h). It has a lane of the whole device to itself.
inline bool YieldsInSegments(const Flow& flow, const Task& task) {
  return IsLc(task) && task.IsSegmented() && flow.lets_lc_yield.load(std::memory_order_relaxed);
}

// Launches one more part of the task. False: the task stays where it was, or the device refused the
// launch and the task has failed.
bool LaunchTask(Flow& flow, Task& task, const PlannedLaunch& planned);

// Whether a queue with work in flight on the lane goes on in a larger place. Not while it has an
// open region: what the region's caller enqueues there later would not be waited for.
inline bool MayGoOn(const Flow& flow, const Queue& queue, LaneIndex behind, PlaceIndex place) {
  return flow.lanes.GoesOn(behind, place) &&
         queue.regions_open.load(std::memory_order_acquire) == 0;
}

struct LanePick {
  LaneIndex lane = kNoLane;        // kNoLane: not now
  LaneIndex after_lane = kNoLane;  // whose earlier launches it comes after
};
// The lane that the plan asks for, or that the queue's order prescribes. A queue whose work is in
// flight goes on in a larger place, and stays where it is for a smaller one.
LanePick PickLane(const Flow& flow, const Task& task, const PlannedLaunch& planned);

// Whether the task has a claim counter; takes a free one if need be.
bool HasCounter(Flow& flow, Task& task);

// The LC task enters the gate; evictable launches on its SMs are evicted if its route says so.
void EnterGate(Flow& flow, Task& task, PlaceIndex place);

// The device has accepted the part: the task moves from its queue to the running tables.
void RecordLaunched(Flow& flow, Task& task, const Part& part, Reason reason);

// Records why the task is held.
void Hold(Flow& flow, Task& task, const PlannedHold& hold);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_LAUNCH_TASK_H_
