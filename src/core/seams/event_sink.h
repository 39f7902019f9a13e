// Where the flow's events go: fixed 64-byte records, appended while the flow runs.
//
// The flow writes typed events (log/events.h), which are encoded into records here; a sink keeps
// them (log/event_log.h), passes them on, or compares them (replay).

#ifndef GPUSHARE_SRC_CORE_SEAMS_EVENT_SINK_H_
#define GPUSHARE_SRC_CORE_SEAMS_EVENT_SINK_H_

#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

// Values are a file format. What a record of each type holds: log/events.h.
enum class EventType : uint8_t {
  kNone = 0,
  kAppCreated = 1,
  kSubmitted = 2,
  kAdmitted = 3,
  kRejected = 4,  // reserved: nothing writes it
  kLaunched = 5,
  kFastPathLaunched = 6,
  kEvicted = 7,
  kPartDone = 8,
  kCompleted = 9,
  kHeld = 10,
  kQueryBegun = 11,
  kQueryEnded = 12,
  kQueueDepth = 13,
  kQuotaChanged = 14,
  kDeviceLost = 15,
  kLaneAbandoned = 16,
  kWaits = 17,  // this and the next two serve replay
  kQueryBeginCalled = 18,
  kQueryEndCalled = 19,
  kChoice = 20,
  kChoiceShift = 21,  // behind the choice that it is about
  kAppUpdated = 22,
  kNextStated = 23,  // behind the submission that states it, and its waits; serves replay
};
inline constexpr EventType kLastEventType = EventType::kNextStated;

// 64 bytes, no padding; written to files as it is, little endian.
struct EventRecord {
  TimeNs time_ns = 0;
  uint64_t id = 0;
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
  int64_t d = 0;
  uint32_t app = 0;
  int16_t place = -1;
  uint8_t type = 0;    // EventType
  uint8_t reason = 0;  // Reason
  uint8_t detail = 0;
  uint8_t app_class = 0;
  uint16_t reserved = 0;
  uint32_t kernel = 0;
};
static_assert(sizeof(EventRecord) == 64, "the record is a file format");

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Threads: any. Must not allocate or block.
  virtual void Append(const EventRecord& record) = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_EVENT_SINK_H_
