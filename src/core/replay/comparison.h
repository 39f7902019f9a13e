// The records that a replay appends, against those of the log, up to the first difference.
//
// Where in a replay: it is the event sink of the replayed scheduler, and the position in the log
// that the device and the inputs read. Only an equal record advances the position.
//
// Threads: that of the replay.

#ifndef GPUSHARE_SRC_CORE_REPLAY_COMPARISON_H_
#define GPUSHARE_SRC_CORE_REPLAY_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "src/core/base/ids.h"
#include "src/core/log/events.h"
#include "src/core/seams/event_sink.h"

namespace gpushare::core {

inline EventType TypeOf(const EventRecord& record) { return static_cast<EventType>(record.type); }

// Whether a caller caused the event, not the scheduler. What follows a submission belongs to it.
inline bool IsInput(const EventRecord& record) {
  const EventType type = TypeOf(record);
  return type == EventType::kSubmitted || type == EventType::kQueryBeginCalled ||
         type == EventType::kQueryEndCalled || type == EventType::kAppUpdated ||
         (type == EventType::kWaits && IsOfTokens(record));
}

class Comparison final : public EventSink {
 public:
  explicit Comparison(absl::Span<const EventRecord> log);

  void Append(const EventRecord& record) override;

  // Whether the log began after the apps were made.
  bool skips_setup() const { return skips_setup_; }
  // The setup is over.
  void Begin() { running_ = true; }
  bool Going() const { return difference_.empty() && at_ < size(); }
  size_t at() const { return at_; }
  // In the log; its size after the last record.
  size_t NumberOf(size_t position) const {
    return position < size() ? numbers_[position] : log_.size();
  }
  size_t size() const { return numbers_.size(); }
  const EventRecord& Recorded(size_t position) const { return log_[numbers_[position]]; }
  const EventRecord& Next(size_t ahead = 0) const { return Recorded(at_ + ahead); }
  bool HasNext(size_t ahead) const { return at_ + ahead < size(); }
  absl::Span<const EventRecord> log() const { return log_; }
  const std::string& difference() const { return difference_; }
  void Stop(std::string difference) {
    if (difference_.empty()) difference_ = std::move(difference);
  }

  // The replay's number of a recorded one; the same where none is known.
  TicketId ToReplay(TicketId recorded) const;
  QueryId ToReplay(QueryId recorded) const;
  TokenStreamId ToReplay(TokenStreamId recorded) const;

  static std::string Show(const EventRecord& record);

 private:
  // Tickets, queries and token streams are numbered apart, so that two of them may have one number.
  // Keeps them apart in a map; an implicit query is its ticket's.
  enum class Kind : uint64_t { kTicket = 0, kQuery = 1, kTokenStream = 2 };
  static constexpr int kKindShift = 60;  // numbers leave bits 60 to 62 free (ids.h)
  static uint64_t KeyOf(uint64_t number, Kind kind) {
    const bool implicit = (number & kImplicitQueryBit) != 0;
    return implicit ? number : number | static_cast<uint64_t>(kind) << kKindShift;
  }
  using Numbers = std::unordered_map<uint64_t, uint64_t>;
  static uint64_t Find(const Numbers& numbers, uint64_t number, Kind kind) {
    const auto found = numbers.find(KeyOf(number, kind));
    return found == numbers.end() ? number : found->second;
  }

  // Remembers that two records of the same input name one ticket, query or stream by two numbers.
  void Learn(const EventRecord& expected, const EventRecord& record);
  void Pair(uint64_t recorded, uint64_t replayed, Kind kind);
  uint64_t ToRecorded(uint64_t replayed, Kind kind) const {
    return Find(to_recorded_, replayed, kind);
  }
  int64_t ToRecorded(int64_t replayed, Kind kind) const {
    return static_cast<int64_t>(ToRecorded(static_cast<uint64_t>(replayed), kind));
  }

  // The record with the numbers of the recorded run.
  EventRecord Translate(EventRecord record) const;

  const absl::Span<const EventRecord> log_;
  std::vector<uint32_t> numbers_;  // in the log, by position
  size_t at_ = 0;
  bool skips_setup_ = false;  // the log begins after it
  bool running_ = false;
  std::string difference_;
  Numbers to_replay_;
  Numbers to_recorded_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_REPLAY_COMPARISON_H_
