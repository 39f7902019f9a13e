// Compares the records of a replay with the log. See comparison.h.

#include "src/core/replay/comparison.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"

namespace gpushare::core {
namespace {

// What the caller of a replay makes before the first recorded submission.
bool IsSetup(EventType type) {
  return type == EventType::kAppCreated || type == EventType::kQuotaChanged;
}

// A choice explains decisions and causes none: logs of libraries that wrote none replay as well. A
// depth is logged when it changes, and what it was before a log began is not in it.
bool IsCompared(EventType type) {
  return type != EventType::kChoice && type != EventType::kChoiceShift &&
         type != EventType::kQueueDepth;
}

}  // namespace

Comparison::Comparison(absl::Span<const EventRecord> log) : log_(log) {
  for (size_t i = 0; i < log.size(); ++i) {
    if (!IsCompared(TypeOf(log[i]))) continue;
    numbers_.push_back(static_cast<uint32_t>(i));
  }
  skips_setup_ = !numbers_.empty() && !IsSetup(TypeOf(Recorded(0)));
}

void Comparison::Append(const EventRecord& record) {
  if (!difference_.empty() || !IsCompared(TypeOf(record))) return;
  if (skips_setup_ && !running_ && IsSetup(TypeOf(record))) return;
  if (at_ == size()) {
    difference_ = absl::StrCat("The replay goes on after the ", log_.size(),
                               " recorded events, with ", Show(record), ".");
    return;
  }
  const EventRecord& expected = Recorded(at_);
  Learn(expected, record);
  EventRecord translated = Translate(record);
  // A library before idle timeouts wrote none.
  if (TypeOf(record) == EventType::kAppCreated && expected.d == 0) translated.d = 0;
  if (std::memcmp(&translated, &expected, sizeof(expected)) != 0) {
    difference_ = absl::StrCat("Event ", NumberOf(at_), " was recorded as ", Show(expected),
                               ", and the replay has ", Show(translated), ".");
    return;
  }
  ++at_;
}

TicketId Comparison::ToReplay(TicketId recorded) const {
  return TicketId{Find(to_replay_, recorded.value, Kind::kTicket)};
}

QueryId Comparison::ToReplay(QueryId recorded) const {
  return QueryId{Find(to_replay_, recorded.value, Kind::kQuery)};
}

TokenStreamId Comparison::ToReplay(TokenStreamId recorded) const {
  return TokenStreamId{Find(to_replay_, recorded.value, Kind::kTokenStream)};
}

std::string Comparison::Show(const EventRecord& record) {
  return absl::StrCat("{type ", record.type, ", time ", record.time_ns, ", id ", record.id, ", a ",
                      record.a, ", b ", record.b, ", c ", record.c, ", d ", record.d, ", app ",
                      record.app, ", kernel ", record.kernel, ", place ", record.place, ", reason ",
                      record.reason, ", detail ", record.detail, "}");
}

void Comparison::Learn(const EventRecord& expected, const EventRecord& record) {
  if (expected.type != record.type || IsOfTokens(expected) != IsOfTokens(record)) return;
  if (TypeOf(record) == EventType::kSubmitted) {
    Pair(expected.id, record.id, Kind::kTicket);
    Pair(expected.id | kImplicitQueryBit, record.id | kImplicitQueryBit, Kind::kQuery);
  } else if (TypeOf(record) == EventType::kQueryBeginCalled) {
    Pair(expected.id, record.id, IsOfTokens(record) ? Kind::kTokenStream : Kind::kQuery);
  }
}

void Comparison::Pair(uint64_t recorded, uint64_t replayed, Kind kind) {
  to_replay_[KeyOf(recorded, kind)] = replayed;
  to_recorded_[KeyOf(replayed, kind)] = recorded;
}

EventRecord Comparison::Translate(EventRecord record) const {
  switch (TypeOf(record)) {
    case EventType::kCompleted:
      if (Completed::NamesDependency(record)) record.b = ToRecorded(record.b, Kind::kTicket);
      record.c = ToRecorded(record.c, Kind::kQuery);
      break;
    case EventType::kSubmitted:
      record.c = ToRecorded(record.c, Kind::kQuery);
      break;
    case EventType::kWaits: {
      const Kind kind = IsOfTokens(record) ? Kind::kTokenStream : Kind::kTicket;
      for (int64_t* number : {&record.a, &record.b, &record.c, &record.d}) {
        *number = ToRecorded(*number, kind);
      }
      break;
    }
    case EventType::kQueryBegun:
    case EventType::kQueryEnded:
    case EventType::kQueryBeginCalled:
    case EventType::kQueryEndCalled:
      record.id = ToRecorded(record.id, IsOfTokens(record) ? Kind::kTokenStream : Kind::kQuery);
      return record;
    case EventType::kNextStated:
    case EventType::kAdmitted:
    case EventType::kLaunched:
    case EventType::kFastPathLaunched:
    case EventType::kEvicted:
    case EventType::kPartDone:
    case EventType::kHeld:
      break;
    default:
      return record;  // the id is an app's or a lane's
  }
  record.id = ToRecorded(record.id, Kind::kTicket);
  return record;
}

}  // namespace gpushare::core
