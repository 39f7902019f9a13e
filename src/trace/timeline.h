// The timeline: slices, counters and instants on tracks, independent of any file format.
//
// Where in the flow: between the event log and the Perfetto writer.
// Invariants: slices of one track do not overlap. Events are sorted by time; at equal times on one
// track, an end precedes the next begin.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_TRACE_TIMELINE_H_
#define GPUSHARE_SRC_TRACE_TIMELINE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "src/core/log/event_log.h"
#include "src/trace/trace_names.h"

namespace gpushare::trace {

enum class TrackKind : uint8_t { kSlices, kCount, kTimeNs, kReal };

struct Track {
  std::string name;
  TrackKind kind = TrackKind::kSlices;
};

// Events of equal times are sorted by these values.
enum class TimelineType : uint8_t { kEnd = 0, kCounter = 1, kInstant = 2, kBegin = 3 };

// Kept small: a log has a million events. Its texts are in Timeline::texts.
struct TimelineEvent {
  struct Argument {
    const char* key = nullptr;   // null if there is no further argument
    const char* text = nullptr;  // the argument's text; null if it is the number
    int64_t number = 0;
  };
  core::TimeNs time_ns = 0;
  TimelineType type = TimelineType::kInstant;
  int32_t track = 0;
  int32_t name = 0;           // index into Timeline::texts
  const char* category = "";  // "LC", "BE", "query", "eviction", "miss", "device", "choice"
  int64_t count = 0;          // value of a counter
  double real = 0;            // value of a counter of kind kReal
  std::array<Argument, 6> arguments = {};

  void Add(const char* key, int64_t number) { *FreeArgument() = {key, nullptr, number}; }
  void Add(const char* key, const char* text) { *FreeArgument() = {key, text, 0}; }

 private:
  Argument* FreeArgument() {
    Argument* at = arguments.data();
    while (at->key != nullptr && at != &arguments.back()) ++at;
    return at;
  }
};

struct Timeline {
  std::vector<Track> tracks;
  std::vector<std::string> texts;
  std::vector<TimelineEvent> events;
};

Timeline MakeTimeline(absl::Span<const core::EventRecord> records, const TraceNames& names);

}  // namespace gpushare::trace

#endif  // GPUSHARE_SRC_TRACE_TIMELINE_H_
