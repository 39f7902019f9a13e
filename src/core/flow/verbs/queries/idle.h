// The verb "idle": an open query without work, or an open region, stops counting as load when its
// app's limit has passed.
//
//   WatchQuery(flow, query);    // an explicit query begins
//   WatchRegion(flow, task);    // a region begins
//   CheckIdle(flow);            // each Tick: what is over its limit holds nobody back any more
//   BeginActiveQuery, UnwatchRegion   // a task of the query comes, the region or the query ends
//
// An application that never ends what it began would else hold best-effort work of other apps for
// ever. The limit is AppOptions::idle_timeout_ns: for a query since it was begun or since a task of
// it was last complete, while it has none; for a region since its begin, and at least
// kRegionBoundsMax times its bound. Nothing is lost: the query counts again from its next task on,
// and both end as any other. What they show of latencies is not learned. The first one of an app is
// reported to the application's log.
//
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_IDLE_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_IDLE_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

void WatchQuery(Flow& flow, QueryState& query);

// Does nothing for a region that has ended.
void WatchRegion(Flow& flow, Task& task);
void UnwatchRegion(Flow& flow, Task& task);

void CheckIdle(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_IDLE_H_
