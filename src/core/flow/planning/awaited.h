// Which BE queues LC work waits for: by a ticket, or through other tasks.
//
// A policy must let the head of such a queue go on, whatever the LC apps' bounds say, once no query
// is active. Otherwise the LC task would wait for ever, on an idle device.
//
//   LC head waits -> ticket of a BE task -> that task's queue -> its head waits -> ...
//
// A queue runs in order, so what matters of it is its head. A graph whose buffers another task has
// begun to use waits for that task's queue. The search visits each queue once.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_PLANNING_AWAITED_H_
#define GPUSHARE_SRC_CORE_FLOW_PLANNING_AWAITED_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Sets Queue::awaited_by_lc of each queue. `lc_waits`: the head of an LC queue waits for a ticket.
void MarkAwaited(Flow& flow, bool lc_waits);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_PLANNING_AWAITED_H_
