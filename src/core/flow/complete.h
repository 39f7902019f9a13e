// Stage 6, complete: from device completions to finished tickets.
//
// A launch that ends frees its part; a task ends when all of its block tasks are done, or returns
// to the front of its queue with the rest. Tickets complete exactly once: a completion that comes
// twice is counted and ignored, one that never comes is timed out and its lane given up. Callbacks
// are queued here and run after Tick, with no lock held. Thread: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_COMPLETE_H_
#define GPUSHARE_SRC_CORE_FLOW_COMPLETE_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Returns whether anything completed.
bool Complete(Flow& flow);

// Ends a task that is in the flow's tables, with all that it holds.
void FinishTask(Flow& flow, Task& task, Verdict verdict);

// Takes its launches away from a task without waiting for them (a hang, a shutdown's deadline).
void ForgetParts(Flow& flow, Task& task);

// The device is lost: every task completes with kDeviceLost and no further call is made.
void LoseDevice(Flow& flow, int32_t error_code);

// Every task that is not on the device completes with `verdict`.
void FinishBacklog(Flow& flow, Verdict verdict);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_COMPLETE_H_
