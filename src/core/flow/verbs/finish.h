// The verb "finish": a task completes, exactly once, with its verdict, record and callback.
//
// Every path to the end of a task goes through FinishTask: completion, failure, cancel, drop,
// shutdown, a hung lane, a lost device. The pieces of a query's graph (entry/pieces.h) complete in
// their order, whichever ends first: the ticket, which is the last one's, is complete only when no
// piece is on the device. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_FINISH_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_FINISH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// The task must be in no queue's list and own no part. Of a piece that did not succeed, those
// behind it that are not launched are taken out of their queue.
void FinishTask(Flow& flow, Task& task, Verdict verdict);

// Finishes every task that waits in a queue.
void FinishBacklog(Flow& flow, Verdict verdict);

// The device is lost: finishes every task with kDeviceLost, and accepts no more work.
void LoseDevice(Flow& flow, int32_t error_code);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_FINISH_H_
