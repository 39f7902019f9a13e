// Field numbers and enum values of the Perfetto trace format, from its published schema
// (github.com/google/perfetto, protos/perfetto/trace/). It lists only those that the writer and its
// test use.

#ifndef GPUSHARE_SRC_TRACE_PERFETTO_FIELDS_H_
#define GPUSHARE_SRC_TRACE_PERFETTO_FIELDS_H_

#include <cstdint>

namespace gpushare::trace::perfetto {

// trace.proto: message Trace.
inline constexpr uint32_t kTracePacket = 1;

// trace_packet.proto: message TracePacket.
inline constexpr uint32_t kPacketTimestamp = 8;    // uint64, ns
inline constexpr uint32_t kPacketSequenceId = 10;  // trusted_packet_sequence_id, uint32
inline constexpr uint32_t kPacketTrackEvent = 11;
inline constexpr uint32_t kPacketSequenceFlags = 13;  // uint32
inline constexpr uint32_t kPacketTrackDescriptor = 60;
inline constexpr uint32_t kSequenceIncrementalStateCleared = 1;

// track_event/track_descriptor.proto: message TrackDescriptor.
inline constexpr uint32_t kTrackUuid = 1;  // uint64
inline constexpr uint32_t kTrackName = 2;
inline constexpr uint32_t kTrackProcess = 3;
inline constexpr uint32_t kTrackParentUuid = 5;
inline constexpr uint32_t kTrackCounter = 8;

// track_event/process_descriptor.proto: message ProcessDescriptor.
inline constexpr uint32_t kProcessPid = 1;  // int32
inline constexpr uint32_t kProcessName = 6;

// track_event/counter_descriptor.proto: message CounterDescriptor.
inline constexpr uint32_t kCounterUnit = 3;  // enum
inline constexpr int32_t kUnitTimeNs = 1;
inline constexpr int32_t kUnitCount = 2;

// track_event/track_event.proto: message TrackEvent.
inline constexpr uint32_t kEventDebugAnnotations = 4;
inline constexpr uint32_t kEventType = 9;  // enum
inline constexpr uint32_t kEventTrackUuid = 11;
inline constexpr uint32_t kEventCategories = 22;
inline constexpr uint32_t kEventName = 23;
inline constexpr uint32_t kEventCounterValue = 30;        // int64
inline constexpr uint32_t kEventDoubleCounterValue = 44;  // double
inline constexpr int32_t kTypeSliceBegin = 1;
inline constexpr int32_t kTypeSliceEnd = 2;
inline constexpr int32_t kTypeInstant = 3;
inline constexpr int32_t kTypeCounter = 4;

// track_event/debug_annotation.proto: message DebugAnnotation.
inline constexpr uint32_t kAnnotationIntValue = 4;  // int64
inline constexpr uint32_t kAnnotationStringValue = 6;
inline constexpr uint32_t kAnnotationName = 10;

}  // namespace gpushare::trace::perfetto

#endif  // GPUSHARE_SRC_TRACE_PERFETTO_FIELDS_H_
