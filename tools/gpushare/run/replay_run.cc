#include "tools/gpushare/run/replay_run.h"

#include <cstdint>

#include "tools/gpushare/run/run_setup.h"

namespace gpushare::tool {

ReplayOutcome ExecuteReplay(const RunPlan& plan, const std::string& log_path) {
  int64_t events = 0;
  const EventLogHandle log = OpenEventLog(log_path, events);
  RunFault fault;
  const RunSetup setup(OpenReplay(log.get(), plan.device, plan.policy), plan, fault);
  ReplayOutcome outcome;
  Check(gpushare_replay_run(setup.runtime.get(), &outcome.result));
  outcome.difference = ReplayDifference(setup.runtime.get());
  return outcome;
}

}  // namespace gpushare::tool
