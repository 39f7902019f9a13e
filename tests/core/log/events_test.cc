// The event codec: each field of each event stands in its slot of the file format, and decoding
// gives back what was encoded.

#include "src/core/log/events.h"

#include <gtest/gtest.h>

#include <bit>
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

// `slots` has what the event fills; the time and the type are added.
EventRecord Of(EventType type, EventRecord slots) {
  slots.time_ns = kTime;
  slots.type = static_cast<uint8_t>(type);
  return slots;
}

// And kTask.
EventRecord OfTask(EventType type, EventRecord slots) {
  slots.id = 0x1122334455667788;
  slots.app = 12;
  slots.app_class = 1;
  slots.kernel = 13;
  return Of(type, slots);
}

constexpr int64_t BitsOf(double value) { return std::bit_cast<int64_t>(value); }
constexpr uint8_t Number(Reason reason) { return static_cast<uint8_t>(reason); }
constexpr uint8_t Number(Verdict verdict) { return static_cast<uint8_t>(verdict); }

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

TEST(Events, OfTasksStandInTheirSlots) {
  constexpr auto kBe = AppClass::kBestEffort;
  using enum EventType;
  ExpectSlots(Admitted{.task = kTask, .predicted_ns = 1000, .error_ns = 50},
              OfTask(kAdmitted, {.a = 1000, .b = 50}));
  ExpectSlots(
      Evicted{.ticket = TicketId{77},
              .lane = 5,
              .epoch = 31,
              .workers_to_keep = 32,
              .place = 6,
              .reason = Reason::kEvictForLc},
      Of(kEvicted,
         {.id = 77, .a = 5, .b = 31, .c = 32, .place = 6, .reason = Number(Reason::kEvictForLc)}));
  ExpectSlots(PartDone{.task = kTask,
                       .launch = LaunchId{21},
                       .start_ns = 41,
                       .end_ns = 42,
                       .block_tasks_done = 43,
                       .place = 6,
                       .outcome = Outcome::kEvicted},
              OfTask(kPartDone, {.a = 21, .b = 41, .c = 42, .d = 43, .place = 6, .detail = 1}));
  ExpectSlots(Completed{.task = kTask,
                        .predicted_ns = 1000,
                        .measured_ns = 1100,
                        .query = QueryId{7},
                        .since_ns = 99,
                        .failed_dependency = {},
                        .place = 6,
                        .verdict = Verdict::kCancelled},
              OfTask(kCompleted, {.a = 1000,
                                  .b = 1100,
                                  .c = 7,
                                  .d = 99,
                                  .place = 6,
                                  .detail = Number(Verdict::kCancelled)}));
  // A task that failed for another one was never launched and has no measured time.
  ExpectSlots(Completed{.task = kTask,
                        .predicted_ns = 1000,
                        .query = QueryId{7},
                        .since_ns = 99,
                        .failed_dependency = TicketId{5},
                        .verdict = Verdict::kFailed},
              OfTask(kCompleted, {.a = 1000,
                                  .b = 5,
                                  .c = 7,
                                  .d = 99,
                                  .reason = Number(Reason::kDependencyFailed),
                                  .detail = Number(Verdict::kFailed)}));
  ExpectSlots(Held{.task = kTask, .value_ns = 51, .limit_ns = 52, .reason = Reason::kHoldBlocking},
              OfTask(kHeld, {.a = 51, .b = 52, .reason = Number(Reason::kHoldBlocking)}));
  ExpectSlots(Waits{.ticket = TicketId{77},
                    .app = AppId{12},
                    .waits_for = {TicketId{1}, TicketId{2}, TicketId{3}, TicketId{4}}},
              Of(kWaits, {.id = 77, .a = 1, .b = 2, .c = 3, .d = 4, .app = 12}));
  ExpectSlots(NextStated{.ticket = TicketId{77}, .app = AppId{12}, .within_ns = -1},
              Of(kNextStated, {.id = 77, .a = -1, .app = 12}));
  ExpectSlots(
      NextStated{.ticket = TicketId{77}, .app = AppId{12}, .within_ns = 5, .input_size = 1.0 / 3},
      Of(kNextStated, {.id = 77, .a = 5, .b = BitsOf(1.0 / 3), .app = 12}));
  ExpectSlots(QueryBegun{.query = QueryId{7}, .app = AppId{12}, .arrival_ns = 99, .app_class = kBe},
              Of(kQueryBegun, {.id = 7, .a = 12, .b = 99, .app = 12, .app_class = 1}));
  ExpectSlots(QueryEnded{.query = QueryId{7},
                         .app = AppId{12},
                         .latency_ns = 61,
                         .target_ns = 62,
                         .app_class = kBe},
              Of(kQueryEnded, {.id = 7, .a = 12, .b = 61, .c = 62, .app = 12, .app_class = 1}));
  ExpectSlots(QueryBeginCalled{.query = QueryId{7},
                               .app = AppId{12},
                               .queue = QueueId{3},
                               .arrival_ns = 99,
                               .input_size = 17},
              Of(kQueryBeginCalled, {.id = 7, .a = 3, .b = 99, .c = BitsOf(17), .app = 12}));
  ExpectSlots(QueryEndCalled{.query = QueryId{7}, .app = AppId{12}, .queue = QueueId{3}},
              Of(kQueryEndCalled, {.id = 7, .a = 3, .app = 12}));
}

// Events of token streams have the types of those of queries and waits; `detail` 1 marks them.
TEST(Events, OfTokenStreamsAreCallsWithASubject) {
  using enum EventType;
  ExpectSlots(TokenStreamBegun{.stream = TokenStreamId{7}, .app = AppId{12}, .arrival_ns = 99},
              Of(kQueryBeginCalled, {.id = 7, .b = 99, .app = 12, .detail = 1}));
  ExpectSlots(TokenStreamEnded{.stream = TokenStreamId{7}, .app = AppId{12}},
              Of(kQueryEndCalled, {.id = 7, .app = 12, .detail = 1}));
  ExpectSlots(TokensMarked{.ticket = TicketId{77},
                           .app = AppId{12},
                           .streams = {TokenStreamId{1}, TokenStreamId{2}, TokenStreamId{3},
                                       TokenStreamId{4}}},
              Of(kWaits, {.id = 77, .a = 1, .b = 2, .c = 3, .d = 4, .app = 12, .detail = 1}));
  EXPECT_TRUE(IsOfTokens(Encode(0, TokensMarked())));
  EXPECT_FALSE(IsOfTokens(Encode(0, Waits())));
  EXPECT_FALSE(IsOfTokens(Encode(0, QueryBeginCalled())));
  EXPECT_FALSE(IsOfTokens(Of(kSubmitted, {.detail = 1}))) << "its kind of work";
}

TEST(Events, OfAppsAndTheDeviceStandInTheirSlots) {
  constexpr auto kBe = AppClass::kBestEffort;
  using enum EventType;
  ExpectSlots(AppCreated{.app = AppId{12},
                         .app_class = kBe,
                         .promise = {.target_ns = 500, .p99_bound = 1.15},
                         .idle_timeout_ns = 9},
              Of(kAppCreated,
                 {.id = 12, .a = 1, .b = 500, .c = 1'150'000, .d = 9, .app = 12, .app_class = 1}));
  ExpectSlots(AppCreated{.app = AppId{12},
                         .app_class = AppClass::kLatencyCritical,
                         .promise = {},
                         .priority = -5,
                         .bounds_tokens = true},
              Of(kAppCreated, {.id = 12, .app = 12, .detail = 251, .reserved = 1}));
  ExpectSlots(
      QueueDepth{.app = AppId{12},
                 .app_class = kBe,
                 .depth = 71,
                 .capsms_thousandths = 72'500,
                 .least_headroom_ns = 73},
      Of(kQueueDepth, {.id = 12, .a = 71, .b = 72'500, .c = 73, .app = 12, .app_class = 1}));
  ExpectSlots(QuotaChanged{.app = AppId{12}, .app_class = kBe, .capsms = 48, .packed = true},
              Of(kQuotaChanged, {.id = 12, .a = 48, .b = 1, .app = 12, .app_class = 1}));
  ExpectSlots(
      AppUpdated{.app = AppId{12},
                 .app_class = AppClass::kLatencyCritical,
                 .promise = {.target_ns = 1, .p99_bound = 3, .p50_bound = 4, .p99_alone_ns = 2},
                 .priority = -5},
      Of(kAppUpdated,
         {.id = 12, .a = 1, .b = 2, .c = BitsOf(3), .d = BitsOf(4), .app = 12, .detail = 251}));
  ExpectSlots(AppUpdated{.app = AppId{12}, .app_class = kBe, .promise = {}, .weight = 7},
              Of(kAppUpdated, {.id = 12, .c = BitsOf(7), .app = 12, .app_class = 1}));
  AppUpdated below;
  below.priority = -5;
  EXPECT_EQ(Decode<AppUpdated>(Encode(0, below)).priority, -5);
  ExpectSlots(DeviceLost{.error_code = 700}, Of(kDeviceLost, {.a = 700}));
  ExpectSlots(LaneAbandoned{.lane = 5}, Of(kLaneAbandoned, {.id = 5}));
  ExpectSlots(Choice{.ticket = TicketId{21},
                     .kind = ChoiceKind::kLayout,
                     .chosen = 84,
                     .runner_up = 92,
                     .value = 712'000,
                     .runner_up_value = 690'000},
              Of(kChoice, {.id = 21, .a = 84, .b = 92, .c = 712'000, .d = 690'000, .detail = 1}));
  ExpectSlots(ChoiceShift{.ticket = TicketId{21},
                          .shift_ns = 120,
                          .runner_up_shift_ns = 30,
                          .limit_ns = 140,
                          .runner_up_limit_ns = 150},
              Of(kChoiceShift, {.id = 21, .a = 120, .b = 30, .c = 140, .d = 150}));
}

TEST(Events, SubmittedHasKindInDetailAndTheCopyInReserved) {
  EventRecord record =
      OfTask(EventType::kSubmitted, {.a = 3,
                                     .b = 1 << 20,
                                     // An implicit query has the highest bit.
                                     .c = static_cast<int64_t>(0x8000000000000007),
                                     .d = 99,
                                     .detail = 3,               // TaskKind::kMemcpy
                                     .reserved = 2 | 1 << 2});  // kDeviceToHost, pinned
  ExpectSlots(Submitted{.task = kTask,
                        .queue = QueueId{3},
                        .amount = 1 << 20,
                        .query = QueryId{0x8000000000000007},
                        .arrival_ns = 99,
                        .kind = TaskKind::kMemcpy,
                        .copy = Submitted::PackCopy(CopyDirection::kDeviceToHost, true)},
              record);
  const auto decoded = Decode<Submitted>(record);
  EXPECT_EQ(decoded.direction(), CopyDirection::kDeviceToHost);
  EXPECT_TRUE(decoded.pinned());
  EXPECT_EQ(decoded.query, QueryId{0x8000000000000007});

  record.reserved = 1;
  EXPECT_EQ(Decode<Submitted>(record).direction(), CopyDirection::kHostToDevice);
  EXPECT_FALSE(Decode<Submitted>(record).pinned());
}

TEST(Events, LaunchedHasWorkersAboveTheLane) {
  const EventRecord slots = {.a = 21,
                             .b = 22,
                             .c = int64_t{264} << 32 | 5,
                             .d = 23,
                             .place = 6,
                             .reason = Number(Reason::kResume),
                             .detail = 1};  // Form::kWorkers
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
  const EventRecord record = OfTask(EventType::kLaunched, slots);
  ExpectSlots(event, record);
  EXPECT_EQ(Decode<Launched>(record).workers, 264);
  EXPECT_EQ(Decode<Launched>(record).lane, 5);

  FastPathLaunched fast;
  static_cast<Launched&>(fast) = event;
  ExpectSlots(fast, OfTask(EventType::kFastPathLaunched, slots));
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

}  // namespace
}  // namespace gpushare::core
