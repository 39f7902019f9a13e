// Replay: the same inputs and completions through a scheduler again, decision by decision.
//
// A recorded log holds the inputs (submissions, queries) and the device's answers (parts done, and
// when). The replay repeats both: inputs at their place in the log, completions from a ReplayDevice
// that executes nothing and returns what was recorded for the same launches. Each record that the
// scheduler appends is compared with the recorded one, so the first difference is found where it
// happens.
//
// Invariants: time is virtual and never passes the next recorded event; ticket and query numbers
// are translated (they depend on when the caller released tickets), everything else must be equal.
// Threads: one. Not on any hot path; allocates.
//
// Not supported, and reported as a difference where they matter: runs with the scheduler's own
// thread, cancel, quiesce, shutdown and policy changes in the middle, regions, apps made after the
// first submission, and logs that dropped records.

#ifndef GPUSHARE_SRC_CORE_REPLAY_REPLAY_H_
#define GPUSHARE_SRC_CORE_REPLAY_REPLAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/device.h"
#include "src/core/seams/policy.h"

namespace gpushare::core {

// What a log does not hold: the scenario. It must be that of the recorded run.
struct ReplaySetup {
  DeviceCapabilities capabilities;  // of the recorded device
  SchedulerOptions options;         // its event sink is not used
  std::unique_ptr<CostModel> model;
  std::unique_ptr<Policy> policy;
  // Makes the apps, queues, kernels and reservations, in the recorded order.
  std::function<absl::Status(Scheduler&)> prepare;
};

struct ReplayResult {
  bool matches = false;
  int64_t records = 0;           // compared and equal, from the start
  uint64_t recorded_digest = 0;  // DecisionDigest of the log
  uint64_t replayed_digest = 0;  // and of the replay, with the recorded ticket numbers
  std::string difference;        // the first one, as a sentence; empty when it matches
};

// Errors: INVALID_ARGUMENT for a log that dropped records or is empty, and what the scheduler or
// `prepare` answers. A replay that differs is no error.
absl::StatusOr<ReplayResult> Replay(const EventLogFile& log, ReplaySetup setup);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_REPLAY_REPLAY_H_
