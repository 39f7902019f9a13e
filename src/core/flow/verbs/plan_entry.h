// What a plan may ask for. An entry that may not be done is dropped and counted; the task keeps its
// place, and its completion record and a Held event say kHoldPlan.
//
// The plans of the library's own policies ask for nothing else. Those of an application's policy
// may hold anything. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_PLAN_ENTRY_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_PLAN_ENTRY_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Whether the task can be launched in this form at all.
bool HasForm(const Task& task, Form form);

// Whether a BE task is on the device in slices alone. Its next one goes to the lane of these,
// behind them, so that no time of the host stands between two slices.
bool RunsInSlices(const Task& task);

// Whether a task on the device may get one more launch: BE workers that share its claim counter, or
// a slice behind slices. An LC queue is ordered by its lane, so a second lane would break its
// order.
bool MayHaveMoreParts(const Task& task, const PlannedLaunch& planned);

// Counts an entry that is not done.
void CountDropped(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_PLAN_ENTRY_H_
