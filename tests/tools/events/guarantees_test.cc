// What an app was promised and got, from the index and the events of a run.

#include "tools/gpushare/events/guarantees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/gpushare/events/explain_text.h"
#include "tools/gpushare/events/held_times.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kService = 1;
constexpr uint32_t kTraining = 2;
constexpr uint64_t kTicket = 900;

EventIndexEntry MadeUpRun() {
  EventIndexEntry run;
  run.case_name = "one";
  run.policy = "adaptive";
  run.apps = {{kService, "service", true}, {kTraining, "training", false}};
  LcPromise promise;
  promise.app_id = kService;
  promise.p99_bound = 1.05;
  promise.p50_bound = 1.1;
  promise.p99_alone_ns = 1'000'000;
  promise.p50_alone_ns = 500'000;
  promise.tail_credit = -1.5;
  promise.queries_late_for_be = 4;
  run.promises = {promise};
  return run;
}

gpushare_event OfTask(gpushare_event_type type, int64_t time_ns,
                      gpushare_reason reason = GPUSHARE_REASON_NONE) {
  gpushare_event event = GPUSHARE_EVENT_INIT;
  event.type = type;
  event.id = kTicket;
  event.time_ns = time_ns;
  event.app_id = kTraining;
  event.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  event.reason = reason;
  return event;
}

gpushare_event LeftAt(int64_t time_ns) {
  gpushare_event event = OfTask(GPUSHARE_EVENT_PART_DONE, time_ns);
  event.detail = 1;  // it was evicted
  return event;
}

gpushare_event QueryOf(int64_t latency_ns) {
  gpushare_event event = GPUSHARE_EVENT_INIT;
  event.type = GPUSHARE_EVENT_QUERY_ENDED;
  event.app_id = kService;
  event.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  event.b = latency_ns;
  return event;
}

// 98 queries of 550 us, and two that end beyond the bound of 1.05 ms.
std::vector<gpushare_event> Queries() {
  std::vector<gpushare_event> events(98, QueryOf(550'000));
  events.push_back(QueryOf(1'060'000));
  events.push_back(QueryOf(2'000'000));
  return events;
}

int64_t HeldFor(const std::vector<gpushare_event>& events, gpushare_reason reason) {
  const std::vector<HeldTime> all = HeldTimesOf(events)[kTraining];
  for (const HeldTime& held : all) {
    if (held.reason == reason) return held.time_ns;
  }
  return 0;
}

TEST(GuaranteesTest, ComparesLatenciesWithThoseAloneAndWithTheBound) {
  const AppGuarantee service = GuaranteesOf(MadeUpRun(), Queries())[0];
  EXPECT_EQ(service.queries, 100);
  EXPECT_EQ(service.p50_over_alone, 1.1);
  EXPECT_EQ(service.p99_over_alone, 1.06);
  EXPECT_EQ(service.late_share, 0.02);
}

TEST(GuaranteesTest, ATargetBelowTheBoundCountsToo) {
  EventIndexEntry run = MadeUpRun();
  run.promises[0].target_ns = 540'000;
  EXPECT_EQ(GuaranteesOf(run, Queries())[0].late_share, 1);
}

// A corrupt index must not overflow the limit.
TEST(GuaranteesTest, ABoundBeyondAllTimesIsNone) {
  EventIndexEntry run = MadeUpRun();
  run.promises[0].p99_bound = 1e15;
  run.promises[0].p99_alone_ns = INT64_MAX;
  EXPECT_EQ(GuaranteesOf(run, Queries())[0].late_share, 0);
}

TEST(GuaranteesTest, WithoutAPromiseThereAreOnlyLatencies) {
  EventIndexEntry run = MadeUpRun();
  run.promises.clear();
  const std::string text = TextOf(GuaranteesOf(run, Queries()), 50'000'000);
  EXPECT_THAT(text, HasSubstr("p50 550 us, p99 1.06 ms\n"));
  EXPECT_THAT(text, Not(HasSubstr(", promised")));
  EXPECT_THAT(text, Not(HasSubstr("tail account")));
}

TEST(GuaranteesTest, SaysItInWords) {
  std::vector<gpushare_event> events = Queries();
  events.push_back(OfTask(GPUSHARE_EVENT_HELD, 1'000, GPUSHARE_REASON_HOLD_BLOCKING));
  events.push_back(OfTask(GPUSHARE_EVENT_LAUNCHED, 3'001'000));
  const std::string text = TextOf(GuaranteesOf(MadeUpRun(), events), 50'000'000);
  EXPECT_THAT(text, HasSubstr("window of 50.0 ms"));
  EXPECT_THAT(text,
              HasSubstr("LC service, promised p99 within 1.05 x alone, median within 1.1 x "));
  EXPECT_THAT(text, HasSubstr("last 100 queries: p50 550 us (1.100 x alone), p99 1.06 ms (1.060 x "
                              "alone), 2.00 % beyond the bound"));
  EXPECT_THAT(text, HasSubstr("-1.50 queries that BE work may still make late, 4 late"));
  EXPECT_THAT(text,
              HasSubstr("BE training, its tasks held for\n    3.00 ms because it could have "));
}

TEST(HeldTimesTest, AHoldEndsWithALaunchAnotherReasonOrTheTask) {
  const std::vector<gpushare_event> events = {
      OfTask(GPUSHARE_EVENT_SUBMITTED, 0),
      OfTask(GPUSHARE_EVENT_HELD, 10, GPUSHARE_REASON_HOLD_HEADROOM),
      OfTask(GPUSHARE_EVENT_HELD, 30, GPUSHARE_REASON_HOLD_LC_ACTIVE),
      OfTask(GPUSHARE_EVENT_LAUNCHED, 100),
      LeftAt(200),  // held again, for another reason
      OfTask(GPUSHARE_EVENT_HELD, 205, GPUSHARE_REASON_HOLD_HEADROOM),
      OfTask(GPUSHARE_EVENT_COMPLETED, 215),
      OfTask(GPUSHARE_EVENT_QUEUE_DEPTH, 900)};
  EXPECT_EQ(HeldFor(events, GPUSHARE_REASON_HOLD_HEADROOM), 20 + 10);
  EXPECT_EQ(HeldFor(events, GPUSHARE_REASON_HOLD_LC_ACTIVE), 70 + 5);
}

// The library logs a reason once, and evicts most tasks many times for the same one.
TEST(HeldTimesTest, AnEvictedTaskIsHeldForItsLastReasonUntilItsNextLaunch) {
  std::vector<gpushare_event> events = {
      OfTask(GPUSHARE_EVENT_SUBMITTED, 0),
      OfTask(GPUSHARE_EVENT_HELD, 10, GPUSHARE_REASON_HOLD_LC_ACTIVE),
      OfTask(GPUSHARE_EVENT_LAUNCHED, 100),
      OfTask(GPUSHARE_EVENT_LAUNCHED, 110),  // on the other side of a split
      LeftAt(200),                           // the other launch goes on
      LeftAt(300),
      OfTask(GPUSHARE_EVENT_LAUNCHED, 1'000)};
  EXPECT_EQ(HeldFor(events, GPUSHARE_REASON_HOLD_LC_ACTIVE), 90 + 700);
  events[1] = OfTask(GPUSHARE_EVENT_ADMITTED, 10);
  EXPECT_TRUE(HeldTimesOf(events)[kTraining].empty()) << "it was never held";
}

TEST(HeldTimesTest, AReasonFromBeforeTheWindowIsUnknownAndAHoldEndsWithTheWindow) {
  const std::vector<gpushare_event> events = {
      LeftAt(100), OfTask(GPUSHARE_EVENT_LAUNCHED, 400), LeftAt(500),
      OfTask(GPUSHARE_EVENT_HELD, 510, GPUSHARE_REASON_HOLD_CAPSM), QueryOf(1)};
  std::vector<gpushare_event> ended = events;
  ended.back().time_ns = 1'000;
  EXPECT_EQ(HeldFor(ended, GPUSHARE_REASON_NONE), 300 + 10);
  EXPECT_EQ(HeldFor(ended, GPUSHARE_REASON_HOLD_CAPSM), 490);
}

}  // namespace
}  // namespace gpushare::tool
