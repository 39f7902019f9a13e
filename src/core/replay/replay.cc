// Replay of an event log; see replay.h.
//
// All parts share one state, the position in the recorded log (comparison.h). The comparison
// advances it. The device delivers the completions recorded there, and the input player performs
// the input recorded there or lets the scheduler tick.

#include "src/core/replay/replay.h"

#include <cstddef>
#include <utility>

#include "src/core/replay/comparison.h"
#include "src/core/replay/input_player.h"
#include "src/core/replay/log_check.h"
#include "src/core/replay/replay_device.h"

namespace gpushare::core {

struct Replayer::State {
  explicit State(const EventLogFile& log)
      : comparison(log.records), blocked_lanes(log.header.blocked_lanes) {}

  Comparison comparison;
  const uint64_t blocked_lanes;
  ReplayDevice* device = nullptr;  // the scheduler owns it
};

Replayer::Replayer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Replayer::~Replayer() = default;

absl::StatusOr<std::unique_ptr<Replayer>> Replayer::Create(const EventLogFile& log) {
  if (absl::Status status = CheckLog(log); !status.ok()) return status;
  return std::unique_ptr<Replayer>(new Replayer(std::make_unique<State>(log)));
}

std::unique_ptr<Device> Replayer::MakeDevice(const DeviceCapabilities& capabilities) {
  auto device =
      std::make_unique<ReplayDevice>(capabilities, state_->comparison, state_->blocked_lanes);
  state_->device = device.get();
  return device;
}

EventSink& Replayer::events() { return state_->comparison; }

ReplayResult Replayer::Run(Scheduler& scheduler) {
  Comparison& comparison = state_->comparison;
  comparison.Begin();
  InputPlayer(comparison, *state_->device, scheduler).Run();

  ReplayResult result;
  result.records = static_cast<int64_t>(comparison.log().size());
  result.records_equal = static_cast<int64_t>(comparison.NumberOf(comparison.at()));
  for (size_t i = 0; i < comparison.log().size(); ++i) {
    if (!IsDecision(TypeOf(comparison.log()[i]))) continue;
    ++result.decisions;
    if (static_cast<int64_t>(i) < result.records_equal) ++result.decisions_equal;
  }
  result.difference = comparison.difference();
  result.matches = result.difference.empty();
  // What the scheduler appends when it ends was not recorded.
  comparison.Stop("The replay is over.");
  return result;
}

}  // namespace gpushare::core
