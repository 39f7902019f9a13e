// Refuses logs that cannot be replayed. See log_check.h.

#include "src/core/replay/log_check.h"

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "src/core/log/events.h"
#include "src/core/replay/comparison.h"

namespace gpushare::core {
namespace {

bool IsOfTask(EventType type) {
  switch (type) {
    case EventType::kAdmitted:
    case EventType::kLaunched:
    case EventType::kFastPathLaunched:
    case EventType::kPartDone:
    case EventType::kCompleted:
    case EventType::kHeld:
      return true;
    default:
      return false;
  }
}

constexpr int Number(TaskKind kind) { return static_cast<int>(kind); }

absl::Status CheckRecord(const EventRecord& record, size_t number, TimeNs earlier_ns) {
  if (record.time_ns < earlier_ns || record.time_ns > kLatestTimeNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("Event ", number, " of the log is at ", record.time_ns,
                     " ns, and a replay needs times between ", earlier_ns,
                     " ns, that of the event before it, and ", kLatestTimeNs, " ns."));
  }
  if (TypeOf(record) == EventType::kSubmitted && record.detail > Number(TaskKind::kOpaque)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Event ", number, " of the log submits work of the kind ", record.detail,
                     ", and the last known kind is ", Number(TaskKind::kOpaque), "."));
  }
  // Marks decide what its queries show, and no event has them.
  if (TypeOf(record) == EventType::kAppCreated && Decode<AppCreated>(record).bounds_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("Event ", number,
                     " of the log creates an app whose bound counts tokens. The log has no marks "
                     "of tokens, so that a replay would not decide by them."));
  }
  if (TypeOf(record) != EventType::kPartDone) return absl::OkStatus();
  const auto part = Decode<PartDone>(record);
  if (part.start_ns >= 0 && part.start_ns <= part.end_ns && part.end_ns <= record.time_ns &&
      part.block_tasks_done >= 0 && part.outcome <= Outcome::kDeviceLost) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Event ", number,
      " of the log is of a part that no device can have done: ", Comparison::Show(record), "."));
}

}  // namespace

// A log that begins inside a run lacks the state at its start.
absl::Status CheckLog(const EventLogFile& log) {
  if (log.records.empty()) return absl::InvalidArgumentError("The event log is empty.");
  if (log.header.dropped > 0) {
    return absl::InvalidArgumentError(absl::StrCat("The event log dropped ", log.header.dropped,
                                                   " records, and a replay needs all of them."));
  }
  std::unordered_set<uint64_t> submitted;
  TimeNs earlier_ns = 0;
  for (size_t i = 0; i < log.records.size(); ++i) {
    const EventRecord& record = log.records[i];
    if (absl::Status status = CheckRecord(record, i, earlier_ns); !status.ok()) return status;
    earlier_ns = record.time_ns;
    if (TypeOf(record) == EventType::kSubmitted) submitted.insert(record.id);
    if (IsOfTask(TypeOf(record)) && submitted.count(record.id) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The event log begins inside a run, or lacks events: event ", i, " is of task ",
          record.id,
          ", and no event before it submits that task. A replay needs the log of a run from before "
          "its first submission."));
    }
  }
  return absl::OkStatus();
}

}  // namespace gpushare::core
