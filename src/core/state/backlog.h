// The lists of tasks that wait: each queue's FIFO, and the queues that have a head.
//
// A queue is in Flow::backlog exactly while it has a head. Queue::unlaunched falls here when a task
// leaves its list and rises when the rest of an evicted task returns. A queue's view is no longer
// current when its first or second task is another one. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_BACKLOG_H_
#define GPUSHARE_SRC_CORE_STATE_BACKLOG_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void PushBack(Flow& flow, Task& task);
void PushFront(Flow& flow, Task& task);  // the rest of an evicted task goes first
void Unlink(Flow& flow, Task& task);

// How many tasks, from the head on, wait for no ticket, the head included; at most `most`, from 1
// on. Counts on from the last answer: each task is looked at once, unless one leaves out of turn.
int32_t ReadyRun(Queue& queue, int32_t most);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_BACKLOG_H_
