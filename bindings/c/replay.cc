// Replays: an event log through the scheduler of a runtime again.
//
// The runtime is a usual one whose device and event sink are those of core::Replayer. Threads: any;
// a replay runs once, and the flag `begun` keeps a second caller out.

#include <memory>
#include <string>
#include <utility>

#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/base/mutex.h"
#include "src/core/base/status.h"

namespace gpushare::abi {
namespace {

absl::StatusOr<gpushare_runtime*> OpenReplay(gpushare_event_log* log,
                                             const gpushare_runtime_options* options) {
  auto* const object = Find(log);
  if (object == nullptr) return Bad(log);
  auto replay = std::make_unique<ReplayObject>();
  replay->log = object->shared_from_this();
  GPUSHARE_ASSIGN_OR_RETURN(replay->replayer, core::Replayer::Create(object->file));
  auto runtime = OpenRuntime(options, std::move(replay));
  if (!runtime.ok()) return runtime.status();
  return MakeHandle<gpushare_runtime>(*std::move(runtime));
}

absl::StatusOr<ReplayObject*> ReplayOf(RuntimeObject& runtime) {
  if (runtime.replay != nullptr) return runtime.replay.get();
  return absl::FailedPreconditionError(
      "The runtime replays no event log: gpushare_replay_open did not make it.");
}

absl::Status Run(RuntimeObject& runtime, gpushare_replay_result* out_result) {
  GPUSHARE_ASSIGN_OR_RETURN(ReplayObject* const replay, ReplayOf(runtime));
  {
    core::MutexLock lock(&replay->mutex);
    if (replay->begun) {
      return absl::FailedPreconditionError("The event log of the runtime was replayed already.");
    }
    replay->begun = true;
  }
  const core::ReplayResult result = replay->replayer->Run(*runtime.scheduler);
  core::MutexLock lock(&replay->mutex);
  replay->result = result;
  replay->ended = true;
  gpushare_replay_result out = GPUSHARE_REPLAY_RESULT_INIT;
  out.matches = result.matches ? 1 : 0;
  out.events = result.records;
  out.events_equal = result.records_equal;
  out.decisions = result.decisions;
  out.decisions_equal = result.decisions_equal;
  return WriteResult("replay_result", out, out_result);
}

absl::StatusOr<std::string> Difference(RuntimeObject& runtime) {
  GPUSHARE_ASSIGN_OR_RETURN(ReplayObject* const replay, ReplayOf(runtime));
  core::MutexLock lock(&replay->mutex);
  if (!replay->ended) {
    return absl::FailedPreconditionError("No replay of the runtime has run.");
  }
  return replay->result.difference;
}

}  // namespace
}  // namespace gpushare::abi

using gpushare::abi::Enter;

gpushare_status gpushare_replay_open(gpushare_event_log* log,
                                     const gpushare_runtime_options* options,
                                     gpushare_runtime** out_runtime) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_runtime", out_runtime));
    *out_runtime = nullptr;
    GPUSHARE_ASSIGN_OR_RETURN(*out_runtime, gpushare::abi::OpenReplay(log, options));
    return absl::OkStatus();
  });
}

gpushare_status gpushare_replay_run(gpushare_runtime* runtime,
                                    gpushare_replay_result* out_result) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_result", out_result));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_replay_run"));
    return gpushare::abi::Run(*object, out_result);
  });
}

gpushare_status gpushare_replay_difference(gpushare_runtime* runtime, char* buffer,
                                           size_t buffer_size_bytes,
                                           size_t* out_size_bytes) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_ASSIGN_OR_RETURN(const std::string difference, gpushare::abi::Difference(*object));
    return gpushare::abi::CopyText(difference, buffer, buffer_size_bytes, out_size_bytes);
  });
}
