// One random call of an application: submits of all kinds, with waits and callbacks that submit
// again, polls, cancels, early releases, deadlines, queries, regions, quotas, other policies.
// Threads: one.

#ifndef GPUSHARE_TESTS_FAULTS_RUNS_ACTIONS_H_
#define GPUSHARE_TESTS_FAULTS_RUNS_ACTIONS_H_

#include "tests/faults/runs/session.h"

namespace gpushare::fault_runs {

void Act(Session& session);

}  // namespace gpushare::fault_runs

#endif  // GPUSHARE_TESTS_FAULTS_RUNS_ACTIONS_H_
