// The typed events of the flow, and the one place that says where a record keeps each field.
//
// Each event lists its fields in Map; encoding and decoding both walk it, so they cannot differ.
//
//   flow.Emit(Launched{...});                              // Encode: event -> record -> sink
//   const auto launched = Decode<Launched>(record);        // record -> event, of the same type
//
// A record's `place` is -1 where an event has none. Threads: pure functions, any. Nothing
// allocates.

#ifndef GPUSHARE_SRC_CORE_LOG_EVENTS_H_
#define GPUSHARE_SRC_CORE_LOG_EVENTS_H_

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/core/base/types.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/device.h"
#include "src/core/seams/event_sink.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Which task an event is about.
struct TaskLabel {
  TicketId ticket;
  AppId app;
  AppClass app_class = AppClass::kBestEffort;
  KernelId kernel;
};

namespace event_internal {

template <class T>
constexpr auto ToNumber(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return value.value;  // an Id
  }
}

template <class T, class Number>
constexpr T FromNumber(Number number) {
  if constexpr (std::is_enum_v<T> || std::is_arithmetic_v<T>) {
    return static_cast<T>(number);
  } else {
    return T{static_cast<decltype(T::value)>(number)};
  }
}

struct Writer {
  template <class Slot, class Field>
  void operator()(Slot& slot, const Field& field) const {
    slot = static_cast<Slot>(ToNumber(field));
  }
  void Bits(int64_t& slot, double field) const { slot = std::bit_cast<int64_t>(field); }
  void Millionths(int64_t& slot, double field) const { slot = std::llround(field * 1e6); }
};

struct Reader {
  template <class Slot, class Field>
  void operator()(const Slot& slot, Field& field) const {
    field = FromNumber<Field>(slot);
  }
  void Bits(int64_t slot, double& field) const { field = std::bit_cast<double>(slot); }
  void Millionths(int64_t slot, double& field) const { field = static_cast<double>(slot) / 1e6; }
};

template <class Walk, class Record, class Label>
void MapLabel(const Walk& walk, Record& record, Label& label) {
  walk(record.id, label.ticket);
  walk(record.app, label.app);
  walk(record.app_class, label.app_class);
  walk(record.kernel, label.kernel);
}

}  // namespace event_internal

struct AppCreated {
  static constexpr EventType kType = EventType::kAppCreated;
  AppId app;
  AppClass app_class = AppClass::kBestEffort;
  Promise promise;              // the target and the bound on p99
  int64_t idle_timeout_ns = 0;  // 0: of a library that knew none
  int8_t priority = 0;          // LC
  bool bounds_tokens = false;   // LC: the bound is of distances between tokens

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.app);
    walk(record.app, event.app);
    walk(record.app_class, event.app_class);
    walk(record.reserved, event.bounds_tokens);
    walk(record.a, event.app_class);
    walk(record.b, event.promise.target_ns);
    walk.Millionths(record.c, event.promise.p99_bound);
    walk(record.d, event.idle_timeout_ns);
    walk(record.detail, event.priority);
  }
};

// What the app states from now on, all of it. Serves replay too, so doubles are kept as bits.
struct AppUpdated {
  static constexpr EventType kType = EventType::kAppUpdated;
  AppId app;
  AppClass app_class = AppClass::kBestEffort;
  Promise promise;      // LC
  double weight = 1;    // BE
  int8_t priority = 0;  // LC

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.app);
    walk(record.app, event.app);
    walk(record.app_class, event.app_class);
    walk(record.a, event.promise.target_ns);
    walk(record.b, event.promise.p99_alone_ns);
    if (event.app_class == AppClass::kBestEffort) {
      walk.Bits(record.c, event.weight);
    } else {
      walk.Bits(record.c, event.promise.p99_bound);
    }
    walk.Bits(record.d, event.promise.p50_bound);
    walk(record.detail, event.priority);
  }
};

struct Submitted {
  static constexpr EventType kType = EventType::kSubmitted;
  TaskLabel task;
  QueueId queue;
  int64_t amount = 0;  // block tasks; bytes of a copy; declared ns of a library call or opaque work
  QueryId query;
  TimeNs arrival_ns = 0;
  TaskKind kind = TaskKind::kKernel;
  uint16_t copy = 0;  // CopyDirection | pinned << 2, 0 for other kinds

  static constexpr uint16_t PackCopy(CopyDirection direction, bool pinned) {
    return static_cast<uint16_t>(static_cast<unsigned>(direction) | static_cast<unsigned>(pinned)
                                                                        << 2);
  }
  CopyDirection direction() const { return static_cast<CopyDirection>(copy & 3); }
  bool pinned() const { return (copy >> 2 & 1) != 0; }

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    event_internal::MapLabel(walk, record, event.task);
    walk(record.a, event.queue);
    walk(record.b, event.amount);
    walk(record.c, event.query);
    walk(record.d, event.arrival_ns);
    walk(record.detail, event.kind);
    walk(record.reserved, event.copy);
  }
};

// What a record of kWaits, kQueryBeginCalled or kQueryEndCalled is about: its `detail`.
enum class CallSubject : uint8_t {
  kQuery = 0,        // or a task
  kTokenStream = 1,  // file version 2
};
inline constexpr CallSubject kLastCallSubject = CallSubject::kTokenStream;

inline bool HasSubject(EventType type) {
  return type == EventType::kWaits || type == EventType::kQueryBeginCalled ||
         type == EventType::kQueryEndCalled;
}
inline bool IsOfTokens(const EventRecord& record) {
  return HasSubject(static_cast<EventType>(record.type)) &&
         record.detail == static_cast<uint8_t>(CallSubject::kTokenStream);
}

// Follows its Submitted at once; several for more tickets than one record holds.
struct Waits {
  static constexpr EventType kType = EventType::kWaits;
  static constexpr int kTickets = 4;
  TicketId ticket;
  AppId app;
  std::array<TicketId, kTickets> waits_for;  // 0: none

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.ticket);
    walk(record.app, event.app);
    walk(record.a, event.waits_for[0]);
    walk(record.b, event.waits_for[1]);
    walk(record.c, event.waits_for[2]);
    walk(record.d, event.waits_for[3]);
  }
};

// Token streams that wait for a task: it gives each of them a token when it has ended well. Several
// at once for more streams than one record holds. By the caller's thread, for replay.
struct TokensMarked {
  static constexpr EventType kType = EventType::kWaits;
  static constexpr size_t kStreams = 4;
  TicketId ticket;
  AppId app;                                    // of the task
  std::array<TokenStreamId, kStreams> streams;  // 0: none
  CallSubject subject = CallSubject::kTokenStream;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.ticket);
    walk(record.app, event.app);
    walk(record.a, event.streams[0]);
    walk(record.b, event.streams[1]);
    walk(record.c, event.streams[2]);
    walk(record.d, event.streams[3]);
    walk(record.detail, event.subject);
  }
};

// Behind its Submitted, and the Waits of that: what a submission states of its query.
struct NextStated {
  static constexpr EventType kType = EventType::kNextStated;
  TicketId ticket;
  AppId app;
  int64_t within_ns = 0;  // TaskSpec::next_within_ns
  double input_size = 0;  // TaskSpec::input_size; file version 2

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.ticket);
    walk(record.app, event.app);
    walk(record.a, event.within_ns);
    walk.Bits(record.b, event.input_size);
  }
};

struct Admitted {
  static constexpr EventType kType = EventType::kAdmitted;
  TaskLabel task;
  int64_t predicted_ns = 0;
  int64_t error_ns = 0;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    event_internal::MapLabel(walk, record, event.task);
    walk(record.a, event.predicted_ns);
    walk(record.b, event.error_ns);
  }
};

struct Launched {
  static constexpr EventType kType = EventType::kLaunched;
  TaskLabel task;
  LaunchId launch;
  int64_t blocks_asked = 0;
  int32_t workers = 0;
  LaneIndex lane = kNoLane;
  PlaceIndex place = kNoPlace;
  int64_t blocks_done = 0;  // of the task, before this launch
  Form form = Form::kOriginal;
  Reason reason = Reason::kNone;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    event_internal::MapLabel(walk, record, event.task);
    walk(record.a, event.launch);
    walk(record.b, event.blocks_asked);
    MapWorkersAndLane(walk, record, event);
    walk(record.d, event.blocks_done);
    walk(record.place, event.place);
    walk(record.detail, event.form);
    walk(record.reason, event.reason);
  }

 private:
  // workers << 32 | lane
  template <class Walk, class Record, class Event>
  static void MapWorkersAndLane(const Walk& walk, Record& record, Event& event) {
    if constexpr (std::is_const_v<Record>) {
      const int64_t high = record.c >> 32;
      walk(high, event.workers);
      const auto low = static_cast<int32_t>(static_cast<uint32_t>(record.c & 0xffffffff));
      walk(low, event.lane);
    } else {
      record.c = static_cast<int64_t>(event.workers) << 32 | static_cast<uint32_t>(event.lane);
    }
  }
};

// The same, by the submitter's thread.
struct FastPathLaunched : Launched {
  static constexpr EventType kType = EventType::kFastPathLaunched;
};

struct Evicted {
  static constexpr EventType kType = EventType::kEvicted;
  TicketId ticket;  // 0: every launch of the lane
  LaneIndex lane = kNoLane;
  uint64_t epoch = 0;
  int32_t workers_to_keep = 0;
  PlaceIndex place = kNoPlace;
  Reason reason = Reason::kNone;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.ticket);
    walk(record.a, event.lane);
    walk(record.b, event.epoch);
    walk(record.c, event.workers_to_keep);
    walk(record.place, event.place);
    walk(record.reason, event.reason);
  }
};

struct PartDone {
  static constexpr EventType kType = EventType::kPartDone;
  TaskLabel task;
  LaunchId launch;
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
  int64_t block_tasks_done = 0;
  PlaceIndex place = kNoPlace;
  Outcome outcome = Outcome::kFinished;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    event_internal::MapLabel(walk, record, event.task);
    walk(record.a, event.launch);
    walk(record.b, event.start_ns);
    walk(record.c, event.end_ns);
    walk(record.d, event.block_tasks_done);
    walk(record.place, event.place);
    walk(record.detail, event.outcome);
  }
};

struct Completed {
  static constexpr EventType kType = EventType::kCompleted;
  TaskLabel task;
  int64_t predicted_ns = 0;
  int64_t measured_ns = 0;
  QueryId query;
  TimeNs since_ns = 0;         // arrival of its query, else its submission
  TicketId failed_dependency;  // 0: none. Otherwise the task was never launched
  PlaceIndex place = kNoPlace;
  Verdict verdict = Verdict::kPending;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    event_internal::MapLabel(walk, record, event.task);
    walk(record.a, event.predicted_ns);
    MapMeasuredOrDependency(walk, record, event);
    walk(record.c, event.query);
    walk(record.d, event.since_ns);
    walk(record.place, event.place);
    walk(record.detail, event.verdict);
  }

  // Whether record.b is the ticket that the task waited for, and not its measured time.
  static constexpr bool NamesDependency(const EventRecord& record) {
    return record.reason == static_cast<uint8_t>(Reason::kDependencyFailed);
  }

 private:
  template <class Walk, class Record, class Event>
  static void MapMeasuredOrDependency(const Walk& walk, Record& record, Event& event) {
    if constexpr (!std::is_const_v<Record>) {
      const bool failed = event.failed_dependency.value != 0;
      record.reason = static_cast<uint8_t>(failed ? Reason::kDependencyFailed : Reason::kNone);
    }
    if (NamesDependency(record)) {
      walk(record.b, event.failed_dependency);
    } else {
      walk(record.b, event.measured_ns);
    }
  }
};

struct Held {
  static constexpr EventType kType = EventType::kHeld;
  TaskLabel task;
  int64_t value_ns = 0;  // what the reason compares with limit_ns
  int64_t limit_ns = 0;
  Reason reason = Reason::kNone;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    event_internal::MapLabel(walk, record, event.task);
    walk(record.a, event.value_ns);
    walk(record.b, event.limit_ns);
    walk(record.reason, event.reason);
  }
};

// What a plan chose between (PlannedChoice). Not a decision by itself: digests leave it out, and
// replay ignores it.
struct Choice {
  static constexpr EventType kType = EventType::kChoice;
  TicketId ticket;  // 0: it is about the device
  ChoiceKind kind = ChoiceKind::kNone;
  int64_t chosen = 0;
  int64_t runner_up = 0;
  int64_t value = 0;
  int64_t runner_up_value = 0;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.ticket);
    walk(record.a, event.chosen);
    walk(record.b, event.runner_up);
    walk(record.c, event.value);
    walk(record.d, event.runner_up_value);
    walk(record.detail, event.kind);
  }
};

// What the choice logged before does to latencies, and what the runner-up would (LatencyShift).
struct ChoiceShift {
  static constexpr EventType kType = EventType::kChoiceShift;
  TicketId ticket;  // as the choice's
  int64_t shift_ns = 0;
  int64_t runner_up_shift_ns = 0;
  int64_t limit_ns = 0;
  int64_t runner_up_limit_ns = 0;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.ticket);
    walk(record.a, event.shift_ns);
    walk(record.b, event.runner_up_shift_ns);
    walk(record.c, event.limit_ns);
    walk(record.d, event.runner_up_limit_ns);
  }
};

struct QueryBegun {
  static constexpr EventType kType = EventType::kQueryBegun;
  QueryId query;
  AppId app;
  TimeNs arrival_ns = 0;
  AppClass app_class = AppClass::kLatencyCritical;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.query);
    walk(record.app, event.app);
    walk(record.a, event.app);
    walk(record.b, event.arrival_ns);
    walk(record.app_class, event.app_class);
  }
};

struct QueryEnded {
  static constexpr EventType kType = EventType::kQueryEnded;
  QueryId query;
  AppId app;
  int64_t latency_ns = 0;
  int64_t target_ns = 0;
  AppClass app_class = AppClass::kLatencyCritical;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.query);
    walk(record.app, event.app);
    walk(record.a, event.app);
    walk(record.b, event.latency_ns);
    walk(record.c, event.target_ns);
    walk(record.app_class, event.app_class);
  }
};

struct QueueDepth {
  static constexpr EventType kType = EventType::kQueueDepth;
  AppId app;
  AppClass app_class = AppClass::kBestEffort;
  int64_t depth = 0;
  int64_t capsms_thousandths = 0;
  int64_t least_headroom_ns = kNever;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.app);
    walk(record.app, event.app);
    walk(record.app_class, event.app_class);
    walk(record.a, event.depth);
    walk(record.b, event.capsms_thousandths);
    walk(record.c, event.least_headroom_ns);
  }
};

struct QuotaChanged {
  static constexpr EventType kType = EventType::kQuotaChanged;
  AppId app;
  AppClass app_class = AppClass::kBestEffort;
  int32_t capsms = 0;
  bool packed = false;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.app);
    walk(record.app, event.app);
    walk(record.app_class, event.app_class);
    walk(record.a, event.capsms);
    walk(record.b, event.packed);
  }
};

struct DeviceLost {
  static constexpr EventType kType = EventType::kDeviceLost;
  int32_t error_code = 0;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.a, event.error_code);
  }
};

struct LaneAbandoned {
  static constexpr EventType kType = EventType::kLaneAbandoned;
  LaneIndex lane = kNoLane;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.lane);
  }
};

// By the caller's thread, for replay.
struct QueryBeginCalled {
  static constexpr EventType kType = EventType::kQueryBeginCalled;
  QueryId query;
  AppId app;
  QueueId queue;
  TimeNs arrival_ns = 0;
  double input_size = 0;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.query);
    walk(record.app, event.app);
    walk(record.a, event.queue);
    walk(record.b, event.arrival_ns);
    walk.Bits(record.c, event.input_size);
  }
};

// By the caller's thread, for replay.
struct QueryEndCalled {
  static constexpr EventType kType = EventType::kQueryEndCalled;
  QueryId query;
  AppId app;
  QueueId queue;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.query);
    walk(record.app, event.app);
    walk(record.a, event.queue);
  }
};

// By the caller's thread, for replay.
struct TokenStreamBegun {
  static constexpr EventType kType = EventType::kQueryBeginCalled;
  TokenStreamId stream;
  AppId app;
  TimeNs arrival_ns = 0;
  CallSubject subject = CallSubject::kTokenStream;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.stream);
    walk(record.app, event.app);
    walk(record.b, event.arrival_ns);
    walk(record.detail, event.subject);
  }
};

// By the caller's thread, for replay.
struct TokenStreamEnded {
  static constexpr EventType kType = EventType::kQueryEndCalled;
  TokenStreamId stream;
  AppId app;
  CallSubject subject = CallSubject::kTokenStream;

  template <class Walk, class Record, class Event>
  static void Map(const Walk& walk, Record& record, Event& event) {
    walk(record.id, event.stream);
    walk(record.app, event.app);
    walk(record.detail, event.subject);
  }
};

template <class Event>
EventRecord Encode(TimeNs time_ns, const Event& event) {
  EventRecord record;
  record.time_ns = time_ns;
  record.type = static_cast<uint8_t>(Event::kType);
  Event::Map(event_internal::Writer(), record, event);
  return record;
}

// The record must be of the event's type.
template <class Event>
Event Decode(const EventRecord& record) {
  Event event;
  Event::Map(event_internal::Reader(), record, event);
  return event;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_EVENTS_H_
