// One replay: the apps and kernels of a recorded run, and its event log through the scheduler
// again.
//
// Threads: the caller's.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_REPLAY_RUN_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_REPLAY_RUN_H_

#include <string>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

struct ReplayOutcome {
  gpushare_replay_result result = GPUSHARE_REPLAY_RESULT_INIT;
  std::string difference;  // the first one, as a sentence; empty: there is none
};

// `plan` is that of the recorded run; its policy may be another, and its arrivals are not read.
// Throws InputError for a log that cannot be replayed.
ReplayOutcome ExecuteReplay(const RunPlan& plan, const std::string& log_path);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_REPLAY_RUN_H_
