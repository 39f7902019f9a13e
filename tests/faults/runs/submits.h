// Random tasks of a run. Threads: one; also inside completion callbacks.

#ifndef GPUSHARE_TESTS_FAULTS_RUNS_SUBMITS_H_
#define GPUSHARE_TESTS_FAULTS_RUNS_SUBMITS_H_

#include "tests/faults/runs/session.h"

namespace gpushare::fault_runs {

// A task of any kind on the source's queue, with waits on tickets that the run holds. `query`: 0
// for a task without one.
void SubmitRandom(Session& session, const Source& source, gpushare_query query);

}  // namespace gpushare::fault_runs

#endif  // GPUSHARE_TESTS_FAULTS_RUNS_SUBMITS_H_
