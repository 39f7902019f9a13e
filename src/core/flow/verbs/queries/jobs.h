// Jobs of periodic apps: how they went against their deadline, their bound and their worst case.
// A job is a query of an app with a partition. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_JOBS_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_JOBS_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// A plan came into force or ended: Flow::PlanInForce, and which queries are its jobs.
void FollowPlan(Flow& flow);

// Whether the query is a job of the plan in force. One that began before it is not.
bool IsJob(const Flow& flow, const QueryState& query);

// The job is beyond its worst case: counted once. The first one of an app is reported.
void NoteOverrun(Flow& flow, QueryState& query);

// A task of a job has ended. One that no place holds ran on the SMs of every partition, which no
// plan allows for: its job counts as an overrun, and the first one of an app is reported.
void NoteJobTask(Flow& flow, const Task& task);

// The job has ended now.
void NoteJobEnded(Flow& flow, QueryState& query);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_QUERIES_JOBS_H_
