// Writes a timeline in Perfetto's protobuf format. See perfetto_writer.h.
//
// One packet sequence holds everything: first the tracks, then the events in order of time. Each
// event carries its names, so a reader needs no state except the tracks.

#include "src/trace/perfetto_writer.h"

#include <algorithm>
#include <protozero/pbf_writer.hpp>

#include "absl/strings/str_cat.h"
#include "src/core/base/file_io.h"
#include "src/trace/perfetto_fields.h"
#include "src/trace/timeline.h"

namespace gpushare::trace {
namespace {

using protozero::pbf_writer;

// Identifiers are global, and traces may be merged. The high half keeps ours apart.
constexpr uint64_t kUuidBase = uint64_t{0x67707573} << 32;  // "gpus"
constexpr uint64_t kProcessUuid = kUuidBase;
constexpr int32_t kProcessId = 1;
constexpr uint32_t kSequence = 1;

uint64_t TrackUuid(int32_t track) { return kUuidBase + 1 + static_cast<uint64_t>(track); }

void WriteProcess(pbf_writer& trace, const TraceNames& names) {
  pbf_writer packet(trace, perfetto::kTracePacket);
  packet.add_uint32(perfetto::kPacketSequenceId, kSequence);
  packet.add_uint32(perfetto::kPacketSequenceFlags, perfetto::kSequenceIncrementalStateCleared);
  pbf_writer track(packet, perfetto::kPacketTrackDescriptor);
  track.add_uint64(perfetto::kTrackUuid, kProcessUuid);
  pbf_writer process(track, perfetto::kTrackProcess);
  process.add_int32(perfetto::kProcessPid, kProcessId);
  process.add_string(perfetto::kProcessName,
                     names.simulated ? absl::StrCat("SIMULATED ", names.device) : names.device);
}

void WriteTrack(pbf_writer& trace, const Track& source, int32_t index) {
  pbf_writer packet(trace, perfetto::kTracePacket);
  packet.add_uint32(perfetto::kPacketSequenceId, kSequence);
  pbf_writer track(packet, perfetto::kPacketTrackDescriptor);
  track.add_uint64(perfetto::kTrackUuid, TrackUuid(index));
  track.add_uint64(perfetto::kTrackParentUuid, kProcessUuid);
  track.add_string(perfetto::kTrackName, source.name);
  if (source.kind == TrackKind::kSlices) return;
  pbf_writer counter(track, perfetto::kTrackCounter);
  if (source.kind == TrackKind::kTimeNs) {
    counter.add_enum(perfetto::kCounterUnit, perfetto::kUnitTimeNs);
  } else if (source.kind == TrackKind::kCount) {
    counter.add_enum(perfetto::kCounterUnit, perfetto::kUnitCount);
  }
}

int32_t TypeOf(TimelineType type) {
  switch (type) {
    case TimelineType::kBegin:
      return perfetto::kTypeSliceBegin;
    case TimelineType::kEnd:
      return perfetto::kTypeSliceEnd;
    case TimelineType::kCounter:
      return perfetto::kTypeCounter;
    case TimelineType::kInstant:
      break;
  }
  return perfetto::kTypeInstant;
}

void WriteArgument(pbf_writer& event, const TimelineEvent::Argument& argument) {
  pbf_writer annotation(event, perfetto::kEventDebugAnnotations);
  annotation.add_string(perfetto::kAnnotationName, argument.key);
  if (argument.text != nullptr) {
    annotation.add_string(perfetto::kAnnotationStringValue, argument.text);
  } else {
    annotation.add_int64(perfetto::kAnnotationIntValue, argument.number);
  }
}

void WriteEvent(pbf_writer& trace, const Timeline& timeline, const TimelineEvent& source) {
  pbf_writer packet(trace, perfetto::kTracePacket);
  packet.add_uint64(perfetto::kPacketTimestamp,
                    static_cast<uint64_t>(std::max<core::TimeNs>(source.time_ns, 0)));
  packet.add_uint32(perfetto::kPacketSequenceId, kSequence);
  pbf_writer event(packet, perfetto::kPacketTrackEvent);
  event.add_enum(perfetto::kEventType, TypeOf(source.type));
  event.add_uint64(perfetto::kEventTrackUuid, TrackUuid(source.track));
  if (source.type == TimelineType::kCounter) {
    if (timeline.tracks[static_cast<size_t>(source.track)].kind == TrackKind::kReal) {
      event.add_double(perfetto::kEventDoubleCounterValue, source.real);
    } else {
      event.add_int64(perfetto::kEventCounterValue, source.count);
    }
    return;
  }
  if (source.type == TimelineType::kEnd) return;
  event.add_string(perfetto::kEventCategories, source.category);
  event.add_string(perfetto::kEventName, timeline.texts[static_cast<size_t>(source.name)]);
  for (const TimelineEvent::Argument& argument : source.arguments) {
    if (argument.key != nullptr) WriteArgument(event, argument);
  }
}

}  // namespace

std::string FormatPerfettoTrace(absl::Span<const core::EventRecord> records,
                                const TraceNames& names) {
  const Timeline timeline = MakeTimeline(records, names);
  std::string bytes;
  pbf_writer trace(bytes);
  WriteProcess(trace, names);
  for (size_t i = 0; i < timeline.tracks.size(); ++i) {
    WriteTrack(trace, timeline.tracks[i], static_cast<int32_t>(i));
  }
  for (const TimelineEvent& event : timeline.events) WriteEvent(trace, timeline, event);
  return bytes;
}

absl::Status WritePerfettoTrace(const std::string& path,
                                absl::Span<const core::EventRecord> records,
                                const TraceNames& names) {
  const std::string bytes = FormatPerfettoTrace(records, names);
  const absl::string_view piece = bytes;
  return core::WriteFileAtomically(path, absl::MakeConstSpan(&piece, 1));
}

}  // namespace gpushare::trace
