// The event log: the flow's events in fixed 64-byte records, for traces, `explain` and replay.
//
// The scheduler's stages append. The log allocates nothing after construction and writes no file
// while the flow runs. A log that is full counts what it drops. Replay: replay.h.

#ifndef GPUSHARE_SRC_CORE_LOG_EVENT_LOG_H_
#define GPUSHARE_SRC_CORE_LOG_EVENT_LOG_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/base/containers/paged_array.h"
#include "src/core/base/types.h"
#include "src/core/seams/event_sink.h"

namespace gpushare::core {

// A bounded log in memory. It takes memory as it fills.
class EventLog final : public EventSink {
 public:
  explicit EventLog(int64_t records_max);
  void Append(const EventRecord& record) override;
  // Valid while nobody appends.
  absl::Span<const EventRecord> records() const;
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  void Clear();

 private:
  PagedArray<EventRecord> records_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> dropped_{0};
};

// File: 64-byte header {"GPUSHLOG", version u32, record bytes u32, seed u64, count u64, dropped
// u64, digest u64, blocked lanes u64, reserved u64}, then records. Written to a temporary name and
// renamed. Logs of earlier libraries have 0 blocked lanes.
//
// Version 2 has token streams and the sizes of inputs. A file has the lowest version that says what
// its records are, and both are read.
inline constexpr uint32_t kEventLogVersion = 2;
struct EventLogHeader {
  uint32_t version = kEventLogVersion;
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

// Launches, evictions, holds and completions.
bool IsDecision(EventType type);
// A digest of the decisions in a log: equal for two runs that decided the same.
uint64_t DecisionDigest(absl::Span<const EventRecord> records);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_EVENT_LOG_H_
