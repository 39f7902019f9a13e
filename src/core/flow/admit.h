// Stage 2, admit: from posted words to queues and active queries.
//
// A task is accepted into its queue, dropped (late, and its app drops late queries), or cancelled.
// A task that its submitter launched is adopted as running. Thread: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_ADMIT_H_
#define GPUSHARE_SRC_CORE_FLOW_ADMIT_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void Admit(Flow& flow);

// A task that was launched by its submitter enters the flow's tables. Does nothing the second time:
// its completion may come before its started-record.
void Adopt(Flow& flow, Task& task);

// The head of a queue is ready once its tickets are done; called before each plan.
void PromoteHeads(Flow& flow);

// --- a queue's list: tasks that are not on the device -------------------------------------------
void PushBack(Flow& flow, Task& task);
void PushFront(Flow& flow, Task& task);  // the rest of an evicted task goes first
void Unlink(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ADMIT_H_
