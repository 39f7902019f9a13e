// What must hold after a run, whatever failed in it. Each check adds its problems to the ledger.
// After Shutdown, before Release. Threads: one.

#ifndef GPUSHARE_TESTS_FAULTS_RUNS_CHECKS_H_
#define GPUSHARE_TESTS_FAULTS_RUNS_CHECKS_H_

#include "tests/faults/runs/session.h"

namespace gpushare::fault_runs {

void CheckAll(Session& session);

}  // namespace gpushare::fault_runs

#endif  // GPUSHARE_TESTS_FAULTS_RUNS_CHECKS_H_
