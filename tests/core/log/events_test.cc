// The event codec: each field of each event stands in its slot of the file format, and decoding
// gives back what was encoded.

#include "src/core/log/events.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gpushare::core {
namespace {

constexpr TimeNs kTime = 1234;
// An event's values differ from each other and from every default, so that two exchanged fields
// show.
constexpr TaskLabel kTask = {.ticket = TicketId{0x1122334455667788},
                             .app = AppId{12},
                             .app_class = AppClass::kBestEffort,
                             .kernel = KernelId{13}};

EventRecord RecordOf(EventType type) {
  EventRecord record;
  record.time_ns = kTime;
  record.type = static_cast<uint8_t>(type);
  return record;
}

EventRecord RecordOfTask(EventType type) {
  EventRecord record = RecordOf(type);
  record.id = 0x1122334455667788;
  record.app = 12;
  record.app_class = 1;
  record.kernel = 13;
  return record;
}

// Field by field, so that a failure names the slot.
void ExpectEqual(const EventRecord& record, const EventRecord& expected) {
  EXPECT_EQ(record.time_ns, expected.time_ns);
  EXPECT_EQ(record.id, expected.id);
  EXPECT_EQ(record.a, expected.a);
  EXPECT_EQ(record.b, expected.b);
  EXPECT_EQ(record.c, expected.c);
  EXPECT_EQ(record.d, expected.d);
  EXPECT_EQ(record.app, expected.app);
  EXPECT_EQ(record.place, expected.place);
  EXPECT_EQ(record.type, expected.type);
  EXPECT_EQ(record.reason, expected.reason);
  EXPECT_EQ(record.detail, expected.detail);
  EXPECT_EQ(record.app_class, expected.app_class);
  EXPECT_EQ(record.reserved, expected.reserved);
  EXPECT_EQ(record.kernel, expected.kernel);
  EXPECT_EQ(std::memcmp(&record, &expected, sizeof(record)), 0);
}

// The event is encoded as `expected`, and what is decoded from it is encoded the same again.
template <class Event>
void ExpectSlots(const Event& event, const EventRecord& expected) {
  ExpectEqual(Encode(kTime, event), expected);
  ExpectEqual(Encode(kTime, Decode<Event>(expected)), expected);
}

TEST(Events, AppCreated) {
  EventRecord record = RecordOf(EventType::kAppCreated);
  record.id = record.app = 12;
  record.a = record.app_class = 1;
  record.b = 500;
  record.c = 1'050'000;
  ExpectSlots(AppCreated{.app = AppId{12},
                         .app_class = AppClass::kBestEffort,
                         .target_ns = 500,
                         .p99_bound_millionths = 1'050'000},
              record);
}

TEST(Events, SubmittedHasKindInDetailAndTheCopyInReserved) {
  EventRecord record = RecordOfTask(EventType::kSubmitted);
  record.a = 3;
  record.b = 1 << 20;
  record.c = static_cast<int64_t>(0x8000000000000007);  // an implicit query has the highest bit
  record.d = 99;
  record.detail = 3;             // TaskKind::kMemcpy
  record.reserved = 2 | 1 << 2;  // CopyDirection::kDeviceToHost, pinned
  const Submitted event = {
      .task = kTask,
      .queue = QueueId{3},
      .amount = 1 << 20,
      .query = QueryId{0x8000000000000007},
      .arrival_ns = 99,
      .kind = TaskKind::kMemcpy,
      .copy = Submitted::PackCopy(CopyDirection::kDeviceToHost, /*pinned=*/true)};
  ExpectSlots(event, record);
  const auto decoded = Decode<Submitted>(record);
  EXPECT_EQ(decoded.direction(), CopyDirection::kDeviceToHost);
  EXPECT_TRUE(decoded.pinned());
  EXPECT_EQ(decoded.query, QueryId{0x8000000000000007});

  record.reserved = 1;
  EXPECT_EQ(Decode<Submitted>(record).direction(), CopyDirection::kHostToDevice);
  EXPECT_FALSE(Decode<Submitted>(record).pinned());
}

TEST(Events, WaitsHoldsFourTickets) {
  EventRecord record = RecordOf(EventType::kWaits);
  record.id = 77;
  record.app = 12;
  record.a = 1;
  record.b = 2;
  record.c = 3;
  record.d = 4;
  ExpectSlots(Waits{.ticket = TicketId{77},
                    .app = AppId{12},
                    .waits_for = {TicketId{1}, TicketId{2}, TicketId{3}, TicketId{4}}},
              record);
}

TEST(Events, Admitted) {
  EventRecord record = RecordOfTask(EventType::kAdmitted);
  record.a = 1000;
  record.b = 50;
  ExpectSlots(Admitted{.task = kTask, .predicted_ns = 1000, .error_ns = 50}, record);
}

TEST(Events, LaunchedHasWorkersAboveTheLane) {
  EventRecord record = RecordOfTask(EventType::kLaunched);
  record.a = 21;
  record.b = 22;
  record.c = int64_t{264} << 32 | 5;
  record.d = 23;
  record.place = 6;
  record.detail = 1;  // Form::kWorkers
  record.reason = static_cast<uint8_t>(Reason::kResume);
  Launched event;
  event.task = kTask;
  event.launch = LaunchId{21};
  event.blocks_asked = 22;
  event.workers = 264;
  event.lane = 5;
  event.place = 6;
  event.blocks_done = 23;
  event.form = Form::kWorkers;
  event.reason = Reason::kResume;
  ExpectSlots(event, record);
  EXPECT_EQ(Decode<Launched>(record).workers, 264);
  EXPECT_EQ(Decode<Launched>(record).lane, 5);

  FastPathLaunched fast;
  static_cast<Launched&>(fast) = event;
  record.type = static_cast<uint8_t>(EventType::kFastPathLaunched);
  ExpectSlots(fast, record);
}

// A lane of -1 fills the low half of the slot and must not reach the workers.
TEST(Events, LaunchedWithoutALaneKeepsItsWorkers) {
  Launched event;
  event.workers = 264;
  const EventRecord record = Encode(kTime, event);
  EXPECT_EQ(record.c, int64_t{264} << 32 | 0xffffffff);
  EXPECT_EQ(Decode<Launched>(record).workers, 264);
  EXPECT_EQ(Decode<Launched>(record).lane, kNoLane);
}

TEST(Events, Evicted) {
  EventRecord record = RecordOf(EventType::kEvicted);
  record.id = 77;
  record.a = 5;
  record.b = 31;
  record.c = 32;
  record.place = 6;
  record.reason = static_cast<uint8_t>(Reason::kEvictForLc);
  ExpectSlots(Evicted{.ticket = TicketId{77},
                      .lane = 5,
                      .epoch = 31,
                      .workers_to_keep = 32,
                      .place = 6,
                      .reason = Reason::kEvictForLc},
              record);
}

TEST(Events, PartDone) {
  EventRecord record = RecordOfTask(EventType::kPartDone);
  record.a = 21;
  record.b = 41;
  record.c = 42;
  record.d = 43;
  record.place = 6;
  record.detail = 1;  // Outcome::kEvicted
  ExpectSlots(PartDone{.task = kTask,
                       .launch = LaunchId{21},
                       .start_ns = 41,
                       .end_ns = 42,
                       .block_tasks_done = 43,
                       .place = 6,
                       .outcome = Outcome::kEvicted},
              record);
}

TEST(Events, Completed) {
  EventRecord record = RecordOfTask(EventType::kCompleted);
  record.a = 1000;
  record.b = 1100;
  record.c = 7;
  record.d = 99;
  record.place = 6;
  record.detail = static_cast<uint8_t>(Verdict::kCancelled);
  ExpectSlots(Completed{.task = kTask,
                        .predicted_ns = 1000,
                        .measured_ns = 1100,
                        .query = QueryId{7},
                        .since_ns = 99,
                        .failed_dependency = {},
                        .place = 6,
                        .verdict = Verdict::kCancelled},
              record);
}

// A task that failed for another one was never launched and has no measured time.
TEST(Events, CompletedForAFailedDependency) {
  EventRecord record = RecordOfTask(EventType::kCompleted);
  record.a = 1000;
  record.b = 5;
  record.c = 7;
  record.d = 99;
  record.reason = static_cast<uint8_t>(Reason::kDependencyFailed);
  record.detail = static_cast<uint8_t>(Verdict::kFailed);
  ExpectSlots(Completed{.task = kTask,
                        .predicted_ns = 1000,
                        .query = QueryId{7},
                        .since_ns = 99,
                        .failed_dependency = TicketId{5},
                        .verdict = Verdict::kFailed},
              record);
}

TEST(Events, Held) {
  EventRecord record = RecordOfTask(EventType::kHeld);
  record.a = 51;
  record.b = 52;
  record.reason = static_cast<uint8_t>(Reason::kHoldBlocking);
  ExpectSlots(Held{.task = kTask, .value_ns = 51, .limit_ns = 52, .reason = Reason::kHoldBlocking},
              record);
}

TEST(Events, QueryBegun) {
  EventRecord record = RecordOf(EventType::kQueryBegun);
  record.id = 7;
  record.app = 12;
  record.a = 12;
  record.b = 99;
  record.app_class = 1;
  ExpectSlots(QueryBegun{.query = QueryId{7},
                         .app = AppId{12},
                         .arrival_ns = 99,
                         .app_class = AppClass::kBestEffort},
              record);
}

TEST(Events, QueryEnded) {
  EventRecord record = RecordOf(EventType::kQueryEnded);
  record.id = 7;
  record.app = 12;
  record.a = 12;
  record.b = 61;
  record.c = 62;
  record.app_class = 1;
  ExpectSlots(QueryEnded{.query = QueryId{7},
                         .app = AppId{12},
                         .latency_ns = 61,
                         .target_ns = 62,
                         .app_class = AppClass::kBestEffort},
              record);
}

TEST(Events, QueueDepth) {
  EventRecord record = RecordOf(EventType::kQueueDepth);
  record.id = record.app = 12;
  record.app_class = 1;
  record.a = 71;
  record.b = 72'500;
  record.c = 73;
  ExpectSlots(QueueDepth{.app = AppId{12},
                         .app_class = AppClass::kBestEffort,
                         .depth = 71,
                         .capsms_thousandths = 72'500,
                         .least_headroom_ns = 73},
              record);
}

TEST(Events, QuotaChanged) {
  EventRecord record = RecordOf(EventType::kQuotaChanged);
  record.id = record.app = 12;
  record.app_class = 1;
  record.a = 48;
  record.b = 1;
  ExpectSlots(
      QuotaChanged{
          .app = AppId{12}, .app_class = AppClass::kBestEffort, .capsms = 48, .packed = true},
      record);
}

TEST(Events, DeviceLostAndLaneAbandoned) {
  EventRecord lost = RecordOf(EventType::kDeviceLost);
  lost.a = 700;
  ExpectSlots(DeviceLost{.error_code = 700}, lost);
  EventRecord abandoned = RecordOf(EventType::kLaneAbandoned);
  abandoned.id = 5;
  ExpectSlots(LaneAbandoned{.lane = 5}, abandoned);
}

TEST(Events, QueryCalls) {
  EventRecord begin = RecordOf(EventType::kQueryBeginCalled);
  begin.id = 7;
  begin.app = 12;
  begin.a = 3;
  begin.b = 99;
  begin.c = 17;
  ExpectSlots(QueryBeginCalled{.query = QueryId{7},
                               .app = AppId{12},
                               .queue = QueueId{3},
                               .arrival_ns = 99,
                               .input_size_bits = 17},
              begin);
  EventRecord end = RecordOf(EventType::kQueryEndCalled);
  end.id = 7;
  end.app = 12;
  end.a = 3;
  ExpectSlots(QueryEndCalled{.query = QueryId{7}, .app = AppId{12}, .queue = QueueId{3}}, end);
}

TEST(Events, WhatAPlanChoseBetween) {
  EventRecord record = RecordOf(EventType::kChoice);
  record.id = 21;
  record.a = 84;
  record.b = 92;
  record.c = 712'000;
  record.d = 690'000;
  record.detail = 1;
  ExpectSlots(Choice{.ticket = TicketId{21},
                     .kind = ChoiceKind::kLayout,
                     .chosen = 84,
                     .runner_up = 92,
                     .value = 712'000,
                     .runner_up_value = 690'000},
              record);
}

}  // namespace
}  // namespace gpushare::core
