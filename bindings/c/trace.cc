// Traces: recording events of a runtime, and writing them as Perfetto trace and event log.
//
// Threads: any but a callback's for stop. Nothing is written to a file while a trace runs.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings/c/convert.h"
#include "bindings/c/environment.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/file_io.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/core/base/status.h"
#include "src/trace/perfetto_writer.h"

namespace gpushare::abi {
namespace {

// 64 GB of records; a larger number is taken for a unit error.
constexpr int64_t kMaxTraceRecords = int64_t{1} << 30;

// The files are written when the trace stops. A path that cannot be written would lose it then.
absl::Status CheckPaths(const gpushare_trace_options& options) {
  if (options.perfetto_path == nullptr && options.event_log_path == nullptr) {
    return absl::InvalidArgumentError("A trace has neither a Perfetto path nor an event log path.");
  }
  for (const char* const path : {options.perfetto_path, options.event_log_path}) {
    if (path == nullptr) continue;
    GPUSHARE_RETURN_IF_ERROR(CheckText("A path of the trace", path));
    GPUSHARE_RETURN_IF_ERROR(core::CheckWritable(path));
  }
  if (options.perfetto_path == nullptr || options.event_log_path == nullptr) {
    return absl::OkStatus();
  }
  if (!core::IsSameFile(options.perfetto_path, options.event_log_path)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "The Perfetto trace and the event log would replace each other: both paths are '",
      options.perfetto_path, "'."));
}

// Both files have the same events, and an event log file holds kMaxLogFileRecords. Further events
// are dropped and counted.
int64_t RecordsOf(const gpushare_trace_options& options) {
  if (options.records_max == 0) return core::kDefaultTraceRecords;
  if (options.event_log_path == nullptr) return options.records_max;
  return std::min<int64_t>(options.records_max, core::kMaxLogFileRecords);
}

absl::Status CheckOptions(const gpushare_trace_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("trace_options", options.reserved));
  GPUSHARE_RETURN_IF_ERROR(CheckPaths(options));
  if (options.records_max < 0 || options.records_max > kMaxTraceRecords) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace_options.records_max is ", options.records_max,
                     ", and it must lie between 0 and ", kMaxTraceRecords, "."));
  }
  return absl::OkStatus();
}

// The options are checked.
absl::Status Start(RuntimeObject& runtime, const gpushare_trace_options& options,
                   std::unique_ptr<core::EventLog> log) {
  core::MutexLock lock(&runtime.mutex);
  if (runtime.trace.running()) {
    return absl::FailedPreconditionError("A trace of this runtime runs already.");
  }
  std::string perfetto_path = options.perfetto_path == nullptr ? "" : options.perfetto_path;
  std::string event_log_path = options.event_log_path == nullptr ? "" : options.event_log_path;
  runtime.perfetto_path = std::move(perfetto_path);
  runtime.event_log_path = std::move(event_log_path);
  runtime.trace.Start(std::move(log));
  return absl::OkStatus();
}

struct FinishedTrace {
  std::unique_ptr<core::EventLog> log;
  trace::TraceNames names;
  std::string perfetto_path;
  std::string event_log_path;
};

absl::StatusOr<FinishedTrace> Finish(RuntimeObject& runtime, bool of_environment) {
  core::MutexLock lock(&runtime.mutex);
  if (!runtime.trace.running() || runtime.trace_of_environment != of_environment) {
    return absl::FailedPreconditionError("No trace of this runtime runs.");
  }
  FinishedTrace out;
  const core::DeviceCapabilities& capabilities = runtime.scheduler->capabilities();
  out.names.device = runtime.profile_name;
  out.names.simulated = capabilities.simulated;
  out.names.apps = runtime.app_names;
  out.names.kernels = runtime.kernel_names;
  out.names.places[core::kWholeDevice] =
      absl::StrCat("whole device, ", capabilities.profile.sm_count, " SMs");
  const std::vector<core::AppId> live = runtime.scheduler->Apps();
  // From here on nothing allocates.
  std::erase_if(runtime.app_names, [&live](const auto& named) {
    return std::find(live.begin(), live.end(), core::AppId{named.first}) == live.end();
  });
  out.log = runtime.trace.Stop();
  runtime.trace_of_environment = false;
  out.perfetto_path.swap(runtime.perfetto_path);
  out.event_log_path.swap(runtime.event_log_path);
  return out;
}

absl::Status WriteFiles(RuntimeObject& runtime, const FinishedTrace& trace) {
  const absl::Span<const core::EventRecord> records = trace.log->records();
  absl::Status status;
  if (!trace.event_log_path.empty()) {
    core::EventLogHeader header;
    header.seed = runtime.seed;
    header.dropped = trace.log->dropped();
    header.blocked_lanes = runtime.scheduler->BlockedLanes();
    status = core::WriteEventLog(trace.event_log_path, header, records);
  }
  // The one file is written also where the other cannot be.
  if (!trace.perfetto_path.empty()) {
    status.Update(trace::WritePerfettoTrace(trace.perfetto_path, records, trace.names));
  }
  return status;
}

absl::Status WriteTrace(RuntimeObject& runtime, const FinishedTrace& trace,
                        gpushare_trace_summary* out_summary) {
  const absl::Span<const core::EventRecord> records = trace.log->records();
  if (out_summary != nullptr) {
    gpushare_trace_summary summary = GPUSHARE_TRACE_SUMMARY_INIT;
    summary.records = static_cast<int64_t>(records.size());
    summary.dropped = trace.log->dropped();
    summary.decision_digest = core::DecisionDigest(records);
    GPUSHARE_RETURN_IF_ERROR(WriteResult("trace_summary", summary, out_summary));
  }
  if (const int64_t dropped = trace.log->dropped(); dropped > 0) {
    runtime.log.Write(GPUSHARE_LOG_WARNING,
                      absl::StrCat("The trace has the first ", records.size(),
                                   " events of the runtime, and dropped ", dropped,
                                   " for which it had no room (records_max)."));
  }
  return WriteFiles(runtime, trace);
}

// The trace goes on, unless another one was started meanwhile. What happened meanwhile is missing.
void Continue(RuntimeObject& runtime, FinishedTrace trace) {
  core::MutexLock lock(&runtime.mutex);
  if (runtime.trace.running()) return;
  runtime.perfetto_path = std::move(trace.perfetto_path);
  runtime.event_log_path = std::move(trace.event_log_path);
  runtime.trace.Start(std::move(trace.log));
}

absl::Status Stop(RuntimeObject& runtime, gpushare_trace_summary* out_summary) {
  absl::StatusOr<FinishedTrace> trace = Finish(runtime, false);
  if (!trace.ok()) return trace.status();
  absl::Status status =
      core::CatchExhaustion([&] { return WriteTrace(runtime, *trace, out_summary); });
  if (absl::IsResourceExhausted(status)) Continue(runtime, *std::move(trace));
  return status;
}

// The trace of the environment goes on where the options are refused or memory is short.
absl::Status StartOfApplication(RuntimeObject& runtime, const gpushare_trace_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckOptions(options));
  auto log = std::make_unique<core::EventLog>(RecordsOf(options));
  EndTraceOfEnvironment(runtime);
  return Start(runtime, options, std::move(log));
}

}  // namespace

absl::Status StartTraceOfEnvironment(RuntimeObject& runtime) {
  GPUSHARE_ASSIGN_OR_RETURN(const std::string path, TracePathOfEnvironment());
  if (path.empty()) return absl::OkStatus();
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  options.perfetto_path = path.c_str();
  GPUSHARE_RETURN_IF_ERROR(
      Start(runtime, options, std::make_unique<core::EventLog>(RecordsOf(options))));
  core::MutexLock lock(&runtime.mutex);
  runtime.trace_of_environment = true;
  return absl::OkStatus();
}

void EndTraceOfEnvironment(RuntimeObject& runtime) {
  const absl::Status status = core::CatchExhaustion([&]() -> absl::Status {
    const absl::StatusOr<FinishedTrace> trace = Finish(runtime, true);
    return trace.ok() ? WriteTrace(runtime, *trace, nullptr) : absl::OkStatus();
  });
  if (status.ok()) return;
  runtime.log.Write(GPUSHARE_LOG_ERROR, "The trace that GPUSHARE_TRACE asks for is not written:");
  runtime.log.Write(GPUSHARE_LOG_ERROR, std::string(status.message()));
}

}  // namespace gpushare::abi

using gpushare::abi::Enter;

gpushare_status gpushare_trace_start(gpushare_runtime* runtime,
                                     const gpushare_trace_options* options) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    gpushare_trace_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("trace_options", options, &known));
    return gpushare::abi::StartOfApplication(*object, known);
  });
}

gpushare_status gpushare_trace_stop(gpushare_runtime* runtime,
                                    gpushare_trace_summary* out_summary) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_trace_stop"));
    return gpushare::abi::Stop(*object, out_summary);
  });
}

gpushare_status gpushare_event_log_open(const char* path, gpushare_event_log** out_log,
                                        int64_t* out_count) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_log", out_log));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_count", out_count));
    *out_log = nullptr;
    *out_count = 0;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckText("The path of the event log", path));
    auto file = gpushare::core::ReadEventLog(path);
    if (!file.ok()) return file.status();
    const auto count = static_cast<int64_t>(file->records.size());
    auto log = std::make_shared<gpushare::abi::EventLogObject>();
    log->file = *std::move(file);
    auto handle = gpushare::abi::MakeHandle<gpushare_event_log>(std::move(log));
    if (!handle.ok()) return handle.status();
    *out_log = *handle;
    *out_count = count;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_event_log_get(gpushare_event_log* log, int64_t index,
                                       gpushare_event* out_event) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, log);
    const auto& records = object->file.records;
    if (index < 0 || index >= static_cast<int64_t>(records.size())) {
      return absl::OutOfRangeError(absl::StrCat("The event log has ", records.size(),
                                                " events, and event ", index, " is asked for."));
    }
    return gpushare::abi::WriteResult(
        "event", gpushare::abi::ToC(records[static_cast<size_t>(index)]), out_event);
  });
}

gpushare_status gpushare_event_log_retain(gpushare_event_log* log) noexcept {
  return Enter([&] { return gpushare::abi::Retain(log); });
}

gpushare_status gpushare_event_log_release(gpushare_event_log* log) noexcept {
  return Enter([&] { return gpushare::abi::Release(log, [] { return absl::OkStatus(); }); });
}
