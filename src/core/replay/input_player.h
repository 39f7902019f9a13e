// Performs the inputs of a log: submissions, updates of apps, the begins and ends of queries and of
// token streams, and marks.
//
// Run alternates: at an input the player performs it, at any other record the scheduler ticks,
// until the log ends or differs.
//
// Threads: that of the replay.

#ifndef GPUSHARE_SRC_CORE_REPLAY_INPUT_PLAYER_H_
#define GPUSHARE_SRC_CORE_REPLAY_INPUT_PLAYER_H_

#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "src/core/base/ids.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/replay/comparison.h"
#include "src/core/replay/replay_device.h"

namespace gpushare::core {

class InputPlayer {
 public:
  InputPlayer(Comparison& comparison, ReplayDevice& device, Scheduler& scheduler);

  void Run();

 private:
  // Virtual time advances once nothing is left to do: a plan without events, as of LC work alone,
  // may have published a route, and the next input may take the fast path there.
  void PassTime(TimeNs until_ns);
  // Inputs of callbacks stand right after the Tick that ran them, and are performed before the next
  // Tick.
  void PerformInputs();

  absl::Status Perform(const EventRecord& input);

  absl::Status Submit(const Submitted& input);
  absl::Status BeginQueryOrStream(const EventRecord& input);
  absl::Status EndQueryOrStream(const EventRecord& input);
  absl::Status Mark(TicketId ticket);
  absl::Status Update(const AppUpdated& input);

  // The recorded tickets that a submission waits for, from the records that follow it.
  std::vector<TicketId> WaitsOf(TicketId ticket) const;
  // What it states of its query and of the next one.
  NextStated StatedOf(TicketId ticket) const;
  // Another input that named the ticket was performed; the last one releases it.
  absl::Status Used(TicketId ticket);

  Comparison& comparison_;
  ReplayDevice& device_;
  Scheduler& scheduler_;
  // Of recorded tickets: the later submissions that wait for them, and the records of their marks.
  std::unordered_map<TicketId, int> uses_left_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_REPLAY_INPUT_PLAYER_H_
