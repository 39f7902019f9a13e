// Part of stage 5, launch: two tasks in one launch, and a pair that cannot be launched together
// (docs/decisions/0010-fused-launches.md).
//
// Invariants
// - The LC task is the first part; both run in the order of its lane. Each part has its own launch
//   in the tables; it ends, is evicted and resumes by itself.
// - An evictable second part has a lane of its own for its eviction word, or is not fused. Where
// the
//   plan names it in a partial eviction, the word is written before the launch.
// - Both tasks are the heads of their queues. Neither queue has work in flight where stream order
//   would not hold.
// - Neither task signals a native event: it would be recorded after both parts.
// - A pair that cannot be launched together costs neither task more than a bounded wait. A refusal
//   by the device fails neither.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_FUSED_FUSED_LAUNCH_H_
#define GPUSHARE_SRC_CORE_FLOW_FUSED_FUSED_LAUNCH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Launches the task with `planned.fused_with`. If that fails, an LC task of the two is launched
// alone at once, and a BE partner stays in its queue. Two BE tasks are launched one by one, at the
// latest after kFusedWaitNs. Returns whether `task` was launched.
bool LaunchFusedOrAlone(Flow& flow, Task& task, const PlannedLaunch& planned);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_FUSED_FUSED_LAUNCH_H_
