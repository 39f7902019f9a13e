// `gpushare replay LOG`: puts event logs of colocate through the scheduler again and says where the
// decisions differ.
//
// The index beside a log says what its run was made with; the apps come from the scenario's file.
// ReplayLogs() finds and replays the logs; TextOf() words the results.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_REPLAY_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_REPLAY_H_

#include <string>
#include <vector>

#include "tools/gpushare/run/replay_run.h"

namespace gpushare::tool {

struct ReplayOptions {
  std::string log;        // one log, or the folder that colocate wrote: all of its logs
  std::string scenario;   // empty: where the run found it
  std::string case_name;  // empty: any
  std::string policy;     // of the recorded run; empty: any
  std::string under;      // replays under this policy; empty: the recorded one
};

struct ReplayedLog {
  std::string file;  // inside the output folder
  std::string case_name;
  std::string policy;
  std::string under;
  ReplayOutcome outcome;

  bool matches() const { return outcome.result.matches != 0; }
};

// In the order of the index. Throws InputError for a log that cannot be replayed.
std::vector<ReplayedLog> ReplayLogs(const ReplayOptions& options);

// A line a log, and the first difference of each below it.
std::string TextOf(const std::vector<ReplayedLog>& logs);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_REPLAY_H_
