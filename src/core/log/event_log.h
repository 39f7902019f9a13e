// The event log: what happened, in fixed 64-byte records, for traces, `explain` and replay.
//
// The scheduler's stages append; nothing is allocated after construction and nothing is written to
// a file while the flow runs. A log that is full counts what it drops. Replay: replay.h.

#ifndef GPUSHARE_SRC_CORE_LOG_EVENT_LOG_H_
#define GPUSHARE_SRC_CORE_LOG_EVENT_LOG_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/types.h"

namespace gpushare::core {

enum class EventType : uint8_t {
  kNone = 0,
  kAppCreated = 1,  // id: app; a: class; b: target_ns; c: p99_bound x 1e6
  kSubmitted =
      2,  // id: ticket; a: queue; b: block tasks, bytes or (library, opaque) declared ns;
          // c: query; d: arrival; `detail`: TaskKind; `reserved`: CopyDirection | pinned << 2
  kAdmitted = 3,          // id: ticket; a: predicted_ns; b: error_ns
  kRejected = 4,          // id: app; a: status code
  kLaunched = 5,          // id: ticket; a: launch; b: block tasks asked; c: workers << 32 | lane
  kFastPathLaunched = 6,  // as kLaunched
  kEvicted = 7,   // id: ticket (0: every launch of the lane); a: lane; b: epoch; c: workers to keep
  kPartDone = 8,  // id: ticket; a: launch; b: start_ns; c: end_ns; d: block tasks done (outcome in
                  // `detail`)
  kCompleted = 9,    // id: ticket; a: predicted_ns; b: measured_ns; c: query; d: arrival or submit
  kHeld = 10,        // id: ticket; a: value_ns; b: limit_ns
  kQueryBegun = 11,  // id: query; a: app; b: arrival_ns
  kQueryEnded = 12,  // id: query; a: app; b: latency_ns; c: target_ns
  kQueueDepth = 13,  // id: app; a: depth; b: CapSMs used x 1000; c: least headroom_ns
  kQuotaChanged = 14,   // id: app; a: CapSMs; b: packed
  kDeviceLost = 15,     // a: native code
  kLaneAbandoned = 16,  // id: lane; a: launch
  kWaits = 17,  // id: ticket; a, b, c, d: tickets it waits for (0: none); follows its kSubmitted
  kQueryBeginCalled = 18,  // id: query; a: queue; b: arrival_ns; by the caller's thread, for replay
  kQueryEndCalled = 19,    // id: query; by the caller's thread, for replay
};
inline constexpr EventType kLastEventType = EventType::kQueryEndCalled;

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
  uint8_t detail = 0;  // Form of launches, Outcome of parts, Verdict of completions
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

// A bounded log in memory.
class EventLog final : public EventSink {
 public:
  explicit EventLog(int64_t records_max);
  void Append(const EventRecord& record) override;
  // Valid while nobody appends.
  absl::Span<const EventRecord> records() const;
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  void Clear();

 private:
  std::vector<EventRecord> records_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> dropped_{0};
};

// File: 64-byte header {"GPUSHLOG", version u32, record bytes u32, seed u64, count u64, dropped
// u64, digest u64, blocked lanes u64, reserved u64}, then records. Written to a temporary name and
// renamed. Logs of before blocked lanes were told have 0 there.
struct EventLogHeader {
  uint64_t seed = 0;
  int64_t dropped = 0;
  uint64_t blocked_lanes = 0;  // Scheduler::BlockedLanes at the end, for replay
};
absl::Status WriteEventLog(const std::string& path, const EventLogHeader& header,
                           absl::Span<const EventRecord> records);
struct EventLogFile {
  EventLogHeader header;
  std::vector<EventRecord> records;
};
// Rejects a truncated, corrupt or oversized file whole.
absl::StatusOr<EventLogFile> ReadEventLog(const std::string& path);
// The same over bytes in memory.
absl::StatusOr<EventLogFile> ParseEventLog(absl::Span<const uint8_t> bytes);

// A digest of the decisions in a log (launches, evictions, holds, completions): equal for two runs
// that decided the same.
uint64_t DecisionDigest(absl::Span<const EventRecord> records);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_EVENT_LOG_H_
