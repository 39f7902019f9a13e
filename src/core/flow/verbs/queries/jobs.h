// Jobs of periodic apps: how they went against their deadline, their bound and their worst case.
// A job is a query of an app with a partition. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_JOBS_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_JOBS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// The job is beyond its worst case: counted once. The first one of an app is reported.
void NoteOverrun(Flow& flow, QueryState& query);

// The job has ended now.
void NoteJobEnded(Flow& flow, QueryState& query);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_JOBS_H_
