// The explanation of a ticket from its events: holds, launches, evictions, what ran beside it,
// predicted against measured.

#include "tools/gpushare/events/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/gpushare/events/explain_text.h"
#include "tools/gpushare/report/timeline.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kBeTicket = 900;
constexpr uint64_t kLcTicket = 500;

gpushare_event Event(gpushare_event_type type, uint64_t id, int64_t time_ns, bool lc) {
  gpushare_event event = GPUSHARE_EVENT_INIT;
  event.type = type;
  event.id = id;
  event.time_ns = time_ns;
  event.app_id = lc ? 1 : 2;
  event.kernel_id = lc ? 11 : 12;
  event.app_class = lc ? GPUSHARE_CLASS_LATENCY_CRITICAL : GPUSHARE_CLASS_BEST_EFFORT;
  return event;
}

EventIndexEntry MadeUpRun() {
  EventIndexEntry run;
  run.case_name = "one";
  run.policy = "adaptive";
  run.start_ns = 1'000'000;
  run.apps = {{1, "service", true}, {2, "training", false}};
  run.kernels = {{11, "decode16", false}, {12, "sincos", false}};
  return run;
}

// A BE task is held twice, launched, evicted for an LC task that runs beside its last block tasks.
std::vector<gpushare_event> Events() {
  std::vector<gpushare_event> events;
  events.push_back(Event(GPUSHARE_EVENT_SUBMITTED, kBeTicket, 1'010'000, false));
  events.push_back(Event(GPUSHARE_EVENT_ADMITTED, kBeTicket, 1'010'500, false));
  events.back().a = 2'700'000;
  events.back().b = 50'000;
  for (const int64_t time_ns : {1'020'000, 1'030'000}) {
    events.push_back(Event(GPUSHARE_EVENT_HELD, kBeTicket, time_ns, false));
    events.back().reason = GPUSHARE_REASON_HOLD_BLOCKING;
    events.back().a = 267'000;
    events.back().b = 109'000;
  }
  events.push_back(Event(GPUSHARE_EVENT_LAUNCHED, kBeTicket, 1'040'000, false));
  events.back().place = 0;
  events.back().detail = GPUSHARE_FORM_WORKERS;
  events.back().reason = GPUSHARE_REASON_IDLE_DEVICE;
  events.push_back(Event(GPUSHARE_EVENT_EVICTED, kBeTicket, 1'500'000, false));
  events.back().reason = GPUSHARE_REASON_EVICT_FOR_LC;
  events.push_back(Event(GPUSHARE_EVENT_PART_DONE, kBeTicket, 1'530'000, false));
  events.back().b = 1'045'000;
  events.back().c = 1'530'000;
  events.back().detail = 1;
  events.back().place = 0;
  events.push_back(Event(GPUSHARE_EVENT_PART_DONE, kLcTicket, 2'100'000, true));
  events.back().b = 1'510'000;
  events.back().c = 2'100'000;
  events.back().place = 0;
  events.push_back(Event(GPUSHARE_EVENT_COMPLETED, kLcTicket, 2'102'000, true));
  events.back().a = 543'000;
  events.back().b = 590'000;
  events.back().d = 1'500'000;
  events.back().detail = GPUSHARE_VERDICT_OK;
  return events;
}

TEST(ExplainTest, TellsWhyABeTaskWaitedAndLeft) {
  const std::string story = TextOf(StoryOf(MadeUpRun(), Events(), kBeTicket).value());
  EXPECT_THAT(story, HasSubstr("Ticket 900 of app training, kernel sincos"));
  EXPECT_THAT(story, HasSubstr("predicted to take 2.70 ms"));
  EXPECT_THAT(story, HasSubstr("267 us against a limit of 109 us, in 2 plans"));
  EXPECT_THAT(story, HasSubstr("no LC query was active"));
  EXPECT_THAT(story, HasSubstr("an LC task needed its SMs"));
  EXPECT_THAT(story, HasSubstr("left because it was evicted after 485 us"));
  EXPECT_THAT(story, HasSubstr("service with kernel decode16, for 20.0 us"));
  EXPECT_THAT(story, HasSubstr("did not complete inside the traced window"));
}

TEST(ExplainTest, ComparesPredictedWithMeasured) {
  const std::string story = TextOf(StoryOf(MadeUpRun(), Events(), kLcTicket).value());
  EXPECT_THAT(story, HasSubstr("Predicted 543 us alone, measured 590 us"));
  EXPECT_THAT(story, HasSubstr("+8.7 %"));
  EXPECT_THAT(story, HasSubstr("From arrival to completion 602 us, of which 12.0 us not on"));
  EXPECT_THAT(story, HasSubstr("training with kernel sincos"));
}

TEST(ExplainTest, NamesTheTicketForWhichATaskFailed) {
  std::vector<gpushare_event> events = Events();
  events.push_back(Event(GPUSHARE_EVENT_COMPLETED, 901, 2'200'000, false));
  events.back().detail = GPUSHARE_VERDICT_CANCELLED;
  events.push_back(Event(GPUSHARE_EVENT_SUBMITTED, 902, 2'150'000, false));
  events.push_back(Event(GPUSHARE_EVENT_COMPLETED, 902, 2'201'000, false));
  events.back().detail = GPUSHARE_VERDICT_FAILED;
  events.back().reason = GPUSHARE_REASON_DEPENDENCY_FAILED;
  events.back().b = 901;
  const std::string story = TextOf(StoryOf(MadeUpRun(), events, 902).value());
  EXPECT_THAT(story, HasSubstr("failed, because ticket 901, for which it waited, did not end with "
                               "ok (cancelled)"));
  EXPECT_THAT(story, HasSubstr("It was never launched."));
  EXPECT_THAT(story, Not(HasSubstr("measured")));
}

gpushare_event Choice(uint64_t ticket, int32_t kind, int64_t time_ns, int64_t chosen,
                      int64_t runner_up) {
  gpushare_event event = Event(GPUSHARE_EVENT_CHOICE, ticket, time_ns, false);
  event.detail = kind;
  event.a = chosen;
  event.b = runner_up;
  event.c = 712'000;
  event.d = 690'000;
  return event;
}

// A choice that the log has twice is printed once, and a layout that was chosen at another time is
// not printed.
TEST(ExplainTest, TellsWhatThePlanChoseAndWhatWasNextBest) {
  std::vector<gpushare_event> events = {Choice(0, kLayoutChoice, 1'000'500, 84, 92)};
  for (const gpushare_event& event : Events()) events.push_back(event);
  events.insert(events.begin() + 6, Choice(0, kLayoutChoice, 1'035'000, 84, 92));
  events.push_back(Choice(0, kLayoutChoice, 2'200'000, 132, -1));
  const std::string story = TextOf(StoryOf(MadeUpRun(), events, kBeTicket).value());
  const std::string told =
      "the plan chose 84 SMs for LC with a predicted BE throughput of 0.712, "
      "before 92 SMs for LC with a predicted BE throughput of 0.690";
  const size_t at = story.find(told);
  ASSERT_NE(at, std::string::npos) << story;
  EXPECT_EQ(story.find("the plan chose", at + 1), std::string::npos);
  EXPECT_THAT(story, Not(HasSubstr("132 SMs")));
}

// In a log the event with the shifts follows its choice. Only the last choice is explained.
TEST(ExplainTest, TellsWhatBothWouldDoToLatencies) {
  std::vector<gpushare_event> events = {Choice(0, kLayoutChoice, 1'000'400, 132, -1)};
  gpushare_event shift = Event(GPUSHARE_EVENT_CHOICE_SHIFT, 0, 1'000'400, false);
  shift.a = 777'000;
  shift.c = 888'000;
  events.push_back(shift);
  events.push_back(Choice(0, kLayoutChoice, 1'000'500, 84, 92));
  shift.time_ns = 1'000'500;
  shift.a = 120'000;
  shift.b = 30'000;
  shift.c = shift.d = 140'000;
  events.push_back(shift);
  for (const gpushare_event& event : Events()) events.push_back(event);
  const std::string story = TextOf(StoryOf(MadeUpRun(), events, kBeTicket).value());
  EXPECT_THAT(story, HasSubstr("84 SMs for LC with a predicted BE throughput of 0.712 that moves "
                               "latencies by 120 us of 140 us, before 92 SMs for LC with a "
                               "predicted BE throughput of 0.690 that moves latencies by 30.0 us "
                               "of 140 us"));
  EXPECT_THAT(story, Not(HasSubstr("777")));
  events.erase(events.begin() + 3);
  EXPECT_THAT(TextOf(StoryOf(MadeUpRun(), events, kBeTicket).value()),
              Not(HasSubstr("moves latencies")));
}

TEST(ExplainTest, TellsThePairAndTheNextOne) {
  std::vector<gpushare_event> events = Events();
  const int64_t pair = int64_t{12} << 32 | 11;
  events.push_back(Choice(kBeTicket, kCoScheduleChoice, 2'200'000, pair, -1));
  events.push_back(Choice(kBeTicket, kOverlapChoice, 2'300'000, 900, 901));
  const std::string story = TextOf(StoryOf(MadeUpRun(), events, kBeTicket).value());
  EXPECT_THAT(story, HasSubstr("chose sincos and decode16 with a co-schedule profit of 0.712; "
                               "nothing else gained"));
  EXPECT_THAT(story, HasSubstr("chose BE ticket 900 with a gain of 712 us, before BE ticket 901 "
                               "with a gain of 690 us"));
}

TEST(ExplainTest, EveryReasonOfADecisionHasAClause) {
  const std::string unknown = gpushare_reason_name(-1);
  for (gpushare_reason reason = 1; reason < GPUSHARE_REASON_DEPENDENCY_FAILED; ++reason) {
    if (gpushare_reason_name(reason) == unknown) continue;
    EXPECT_NE(ReasonClauseOf(reason), "") << gpushare_reason_name(reason);
  }
}

TEST(ExplainTest, AnUnknownTicketHasNoStory) {
  EXPECT_FALSE(StoryOf(MadeUpRun(), Events(), 1).has_value());
}

TEST(ExplainTest, ListsTheSlowestLcTickets) {
  const std::string list = TextOf(SlowestOf(MadeUpRun(), Events(), 10));
  EXPECT_THAT(list, HasSubstr("500  602 us  service"));
  EXPECT_THAT(list, Not(HasSubstr("900")));
}

// A label begins inside the drawing, and on a narrow screen above its row's bars.
TEST(TimelineTest, ANarrowDrawingHasItsLabelsAboveTheBars) {
  const std::string svg = TimelineSvg(MadeUpRun(), Events());
  EXPECT_THAT(svg, HasSubstr("class=\"timeline wide\""));
  const std::string narrow = svg.substr(svg.find("class=\"timeline narrow\""));
  EXPECT_THAT(narrow, HasSubstr("viewBox=\"0 -24 430 ")) << "the legend is above the rows";
  EXPECT_THAT(narrow, HasSubstr("<g class=\"legend\">"));
  const size_t label = narrow.find("<text class=\"row\"");
  ASSERT_NE(label, std::string::npos);
  const double x = std::stod(narrow.substr(narrow.find("x=\"", label) + 3));
  const double y = std::stod(narrow.substr(narrow.find(" y=\"", label) + 4));
  const size_t bar = narrow.find("<rect");
  EXPECT_GE(x, 0);
  EXPECT_LT(y, std::stod(narrow.substr(narrow.find(" y=\"", bar) + 4)));
}

TEST(TimelineTest, ShowsBothClassesAndTheEviction) {
  const std::string svg = TimelineSvg(MadeUpRun(), Events());
  EXPECT_THAT(svg, HasSubstr("class=\"lc\""));
  EXPECT_THAT(svg, HasSubstr("class=\"be\""));
  EXPECT_THAT(svg, HasSubstr("class=\"eviction\""));
  EXPECT_THAT(svg, HasSubstr("class=\"arrival\""));
  EXPECT_EQ(TimelineSvg(MadeUpRun(), {}), "");
}

}  // namespace
}  // namespace gpushare::tool
