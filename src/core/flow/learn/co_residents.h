// Which tasks run beside each other, for completion records and for the model's samples.
//
// Where in the flow: the verb "enter running" calls it for each launch. Threads: the one that runs
// Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_LEARN_CO_RESIDENTS_H_
#define GPUSHARE_SRC_CORE_FLOW_LEARN_CO_RESIDENTS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// The part has begun: marks it, its task and what runs beside it.
void RecordCoResidents(Flow& flow, Task& task, Part& part);

// Whether the part has fewer workers than its SMs hold, of a kernel whose record says what that
// does (seams/width.h). Of others all is learned: under a quota nothing else would be.
bool IsNarrow(const Flow& flow, const Task& task, const Part& part);

// Directions in which pinned BE copies ran at the launch of the LC task and run now, with nothing
// else beside it; 0: not the same ones. What came and went in between is not seen.
LinkUse CopiesAllAlong(const Flow& flow, const Task& task);

// The part's workers, if they are a launch of which co-schedules may learn: a kernel's, equally
// many on every SM of the device.
WorkersOf CoRunWorkers(const Flow& flow, const Task& task, const Part& part);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LEARN_CO_RESIDENTS_H_
