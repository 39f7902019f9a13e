// Stage 5, launch: two tasks in one launch, and what becomes of a pair that cannot go together
// (docs/decisions/0010-fused-launches.md).
//
// Invariants
// - The LC task is the first part, in whose lane's order both are. Each part has its own launch in
//   the tables, and ends, is evicted and goes on by itself.
// - A partner that can leave has a lane of its own to be told on, or does not come along.
// - Both tasks are the heads of their queues, and nothing of these is in flight where stream order
//   would not hold.
// - Neither task signals a native event: it would be recorded behind both parts.
// - A pair that cannot go together costs neither task more than a bounded wait, and a refusal by
//   the device fails neither.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_FUSED_FUSED_LAUNCH_H_
#define GPUSHARE_SRC_CORE_FLOW_FUSED_FUSED_LAUNCH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Launches the task with `planned.fused_with`. If they cannot go together, LC work of the two goes
// alone at once and its BE partner keeps its place in its queue; two BE tasks go alone, each by
// itself, once waiting is of no use. Returns whether `task` was launched.
bool LaunchFusedOrAlone(Flow& flow, Task& task, const PlannedLaunch& planned);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_FUSED_FUSED_LAUNCH_H_
