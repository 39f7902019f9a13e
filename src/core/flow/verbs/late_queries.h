// The verb "drop": a query of an app with drop_late that waits, and can no longer be answered by
// its target.
//
//   deadline   arrival + target
//   end        now + what its app has on the device + its own predicted time
//   dropped    end > deadline, and no task of it has begun
//
// The predictions are those of the device alone, with one error bar of the query's own: a query
// that others slow down is dropped no earlier. They count once the model has measured such work. A
// query that would miss its target even alone is dropped only once its deadline has passed. Else
// nothing of it would ever be measured.
//
// What is on the device cannot be dropped. So an app has few queries there while time is short:
// two, or as many as end in half of the time that is left. With right predictions no answer is
// later than its target and one service. All queues of an app count: they share a lane.
//
// Each look takes the first tasks of each queue, as many as are late, and kBatch drops in all.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_LATE_QUERIES_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_LATE_QUERIES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// Before each plan. Finishes tasks with kDropped, and then asks for another plan. Returns when the
// next query is to be dropped, kNever: none waits.
TimeNs DropLateQueries(Flow& flow);

// Whether a head that is ready stays in the library, because its app has enough on the device or it
// is too late. The next completion asks for a plan, and so does a late head.
bool WaitsForItsTurn(Flow& flow, const Task& head);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_LATE_QUERIES_H_
