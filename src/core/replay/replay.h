// Replay: the same inputs and completions through a scheduler again, decision by decision.
//
// A recorded log holds the inputs (submissions, queries) and the device's answers (parts done, and
// when). The replay repeats both: inputs at their place in the log, completions from a ReplayDevice
// that executes nothing and returns what was recorded for the same launches. Each record that the
// scheduler appends is compared with the recorded one, so the first difference is found where it
// happens.
//
// Invariants: time is virtual and never passes the next recorded event; numbers of tickets, queries
// and token streams are translated (they depend on when the caller released tickets), everything
// else must be equal.
// Threads: one. Not on any hot path; allocates.
//
// Not supported, and reported as a difference where they matter: runs with the scheduler's own
// thread, cancel, quiesce, shutdown and policy changes in the middle, regions, abandoned queries
// and token streams, apps made after the first submission. An update of an app is an input as a
// submission is.

#ifndef GPUSHARE_SRC_CORE_REPLAY_REPLAY_H_
#define GPUSHARE_SRC_CORE_REPLAY_REPLAY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/seams/device.h"
#include "src/core/seams/event_sink.h"

namespace gpushare::core {

struct ReplayResult {
  bool matches = false;
  int64_t records = 0;        // of the log
  int64_t records_equal = 0;  // of these, from the start
  int64_t decisions = 0;      // launches, evictions, holds and completions of the log
  int64_t decisions_equal = 0;
  std::string difference;  // the first one, as a sentence; empty when it matches
};

// Replays one log. The caller first makes what the log does not hold: the device's capabilities,
// the scheduler's options, policy, cost model, apps, queues and kernels, in the order of the run.
//
//   auto replayer = Replayer::Create(log);                       // 1. checks the log
//   options.events = &replayer->events();                        // 2. a scheduler of one's own
//   auto scheduler = Scheduler::Create(options, replayer->MakeDevice(capabilities), ...);
//   ... apps, queues, kernels, reservations ...                  // 3. as in the recorded run
//   ReplayResult result = replayer->Run(*scheduler);             // 4. once
//
// The log and the replayer must outlive the scheduler.
class Replayer {
 public:
  // Takes memory for each task of the log and 4 bytes an event. INVALID_ARGUMENT: the log is empty,
  // dropped records, begins inside a run or has times that no run in virtual time has.
  static absl::StatusOr<std::unique_ptr<Replayer>> Create(const EventLogFile& log);
  ~Replayer();

  std::unique_ptr<Device> MakeDevice(const DeviceCapabilities& capabilities);
  EventSink& events();
  ReplayResult Run(Scheduler& scheduler);

 private:
  struct State;
  explicit Replayer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_REPLAY_REPLAY_H_
