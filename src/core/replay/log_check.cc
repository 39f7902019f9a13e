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

bool IsOfTask(const EventRecord& record) {
  switch (TypeOf(record)) {
    case EventType::kWaits:
      return IsOfTokens(record);  // those of a submission follow it
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

template <class Enum>
constexpr int Number(Enum value) {
  return static_cast<int>(value);
}

// Marks decide what the app's queries show, and libraries before version 2 wrote none.
absl::Status CheckTokens(const EventLogFile& log, size_t number) {
  const EventRecord& record = log.records[number];
  if (log.header.version >= kEventLogVersion || TypeOf(record) != EventType::kAppCreated ||
      !Decode<AppCreated>(record).bounds_tokens) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("Event ", number,
                   " of the log creates an app whose bound counts tokens. The log has version ",
                   log.header.version,
                   ", in which no event has marks of tokens, so that a replay would not "
                   "decide by them."));
}

absl::Status LacksEvents(size_t number, absl::string_view what, uint64_t id,
                         absl::string_view begins) {
  return absl::InvalidArgumentError(
      absl::StrCat("The event log begins inside a run, or lacks events: event ", number, " is of ",
                   what, " ", id, ", and no event before it ", begins,
                   ". A replay needs the log of a run from before its "
                   "first submission."));
}

// What a log has begun so far.
class Begun {
 public:
  // INVALID_ARGUMENT: the record is of something that was not.
  absl::Status Take(const EventRecord& record, size_t number) {
    if (TypeOf(record) == EventType::kSubmitted) tasks_.insert(record.id);
    if (IsOfTask(record) && tasks_.count(record.id) == 0) {
      return LacksEvents(number, "task", record.id, "submits that task");
    }
    if (!IsOfTokens(record)) return absl::OkStatus();
    if (TypeOf(record) == EventType::kQueryBeginCalled) streams_.insert(record.id);
    if (TypeOf(record) == EventType::kQueryEndCalled) return TakeStream(record.id, number);
    if (TypeOf(record) != EventType::kWaits) return absl::OkStatus();
    for (const TokenStreamId stream : Decode<TokensMarked>(record).streams) {
      if (!stream) continue;
      if (absl::Status status = TakeStream(stream.value, number); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TakeStream(uint64_t stream, size_t number) const {
    if (streams_.count(stream) > 0) return absl::OkStatus();
    return LacksEvents(number, "token stream", stream, "begins that stream");
  }

  std::unordered_set<uint64_t> tasks_;
  std::unordered_set<uint64_t> streams_;
};

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
  if (HasSubject(TypeOf(record)) && record.detail > Number(kLastCallSubject)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Event ", number, " of the log, a call, is about something of the kind ", record.detail,
        ", and the last known kind is ", Number(kLastCallSubject), "."));
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
  Begun begun;
  TimeNs earlier_ns = 0;
  for (size_t i = 0; i < log.records.size(); ++i) {
    const EventRecord& record = log.records[i];
    if (absl::Status status = CheckRecord(record, i, earlier_ns); !status.ok()) return status;
    if (absl::Status status = CheckTokens(log, i); !status.ok()) return status;
    earlier_ns = record.time_ns;
    if (absl::Status status = begun.Take(record, i); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gpushare::core
