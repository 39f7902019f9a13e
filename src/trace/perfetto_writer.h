// Writes an event log as a Perfetto trace, which ui.perfetto.dev opens.
//
// Each place (partition) has a track with slices of LC and BE launches; a slice carries the
// predicted and the measured duration. Each LC app has a track of queries. Counters show queue
// depth, CapSMs and headroom; instants show evictions and missed targets. If the device was
// simulated, the name of the process says SIMULATED.
// Invariants: slices of one track never overlap; launches that overlap on a place use further
// tracks. Timestamps never go backwards within the packet sequence.
// Threads: any; works on a finished log.

#ifndef GPUSHARE_SRC_TRACE_PERFETTO_WRITER_H_
#define GPUSHARE_SRC_TRACE_PERFETTO_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/log/event_log.h"
#include "src/trace/trace_names.h"

namespace gpushare::trace {

// Serialises a trace. Records may come in any order; those of unknown types are skipped.
std::string FormatPerfettoTrace(absl::Span<const core::EventRecord> records,
                                const TraceNames& names);

// Writes the trace to a temporary file and renames it to `path`.
// Errors: UNAVAILABLE or NOT_FOUND if the file cannot be written.
absl::Status WritePerfettoTrace(const std::string& path,
                                absl::Span<const core::EventRecord> records,
                                const TraceNames& names);

}  // namespace gpushare::trace

#endif  // GPUSHARE_SRC_TRACE_PERFETTO_WRITER_H_
