// Writes an event log as a Perfetto trace (ui.perfetto.dev opens it).
//
// A lane for each place (partition) with LC and BE slices, which carry predicted and measured
// duration; a track of queries for each LC app; counters for queue depth, CapSMs and headroom;
// instants for evictions and QoS misses. The process is named SIMULATED when the device was.
// Invariants: slices of one track never overlap (a place gets further tracks while its parts do);
// timestamps never go back within a packet sequence. Threads: any; works on a finished log.

#ifndef GPUSHARE_SRC_TRACE_PERFETTO_WRITER_H_
#define GPUSHARE_SRC_TRACE_PERFETTO_WRITER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/log/event_log.h"

namespace gpushare::trace {

// Names for the numbers in a log; one that is missing is shown as its number.
struct TraceNames {
  std::map<uint32_t, std::string> apps;     // by AppId
  std::map<uint32_t, std::string> kernels;  // by KernelId
  std::map<int32_t, std::string> places;    // by PlaceIndex: "LC side, 84 SMs"
  std::string device = "GPU";
  bool simulated = false;
};

// Serialises a trace. Records may come in any order; unknown ones are left out.
std::string FormatPerfettoTrace(absl::Span<const core::EventRecord> records,
                                const TraceNames& names);

// The same into a file, written to a temporary name and renamed.
// Errors: UNAVAILABLE or NOT_FOUND where the file cannot be written.
absl::Status WritePerfettoTrace(const std::string& path,
                                absl::Span<const core::EventRecord> records,
                                const TraceNames& names);

}  // namespace gpushare::trace

#endif  // GPUSHARE_SRC_TRACE_PERFETTO_WRITER_H_
