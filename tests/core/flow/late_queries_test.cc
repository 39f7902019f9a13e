// An app that drops late queries, under more load than the device has: queries that wait are
// dropped once they cannot be answered by their target, and the others are in time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/core/flow/open_loop.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kSoloNs = 667 * kUs;
constexpr int64_t kTargetNs = 10 * kMs;

OpenLoop::Service Service(double load, bool drop_late) {
  OpenLoop::Service service{.load = load, .solo_ns = kSoloNs};
  service.target_ns = kTargetNs;
  service.drop_late = drop_late;
  return service;
}

int64_t LongestAnswerNs(const OpenLoop& loop) {
  return *std::max_element(loop.answers_ns().begin(), loop.answers_ns().end());
}

int64_t AnswersInTime(const OpenLoop& loop) {
  return std::count_if(loop.answers_ns().begin(), loop.answers_ns().end(),
                       [](int64_t ns) { return ns <= kTargetNs; });
}

// Two seconds at three times what the device can do, a short rest, and a load that it can do.
void RunBurst(OpenLoop& loop) {
  ASSERT_NO_FATAL_FAILURE(loop.Run(200));
  loop.SetLoad(3);
  ASSERT_NO_FATAL_FAILURE(loop.Run(9'000));
  loop.SetLoad(0.3);
  ASSERT_NO_FATAL_FAILURE(loop.Run(1'000));
}

TEST(LateQueriesTest, NoAnswerOfABurstIsLaterThanItsTargetAndOneService) {
  for (const bool beside_be : {false, true}) {
    OpenLoop loop("adaptive", Service(0.3, true));
    if (beside_be) loop.AddBe({.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs});
    ASSERT_NO_FATAL_FAILURE(RunBurst(loop));
    EXPECT_LE(LongestAnswerNs(loop), kTargetNs + kSoloNs) << "beside BE: " << beside_be;
    EXPECT_GT(loop.dropped(), 5'500);
    // The burst lasts for 3,000 services, and the device has 1,200 to do besides.
    EXPECT_GE(AnswersInTime(loop), 4'100);
  }
}

// All queues of an app share a lane.
TEST(LateQueriesTest, NoAnswerOfSeveralQueuesIsLaterThanItsTargetAndOneService) {
  for (const int32_t queues : {2, 4, 16}) {
    for (const bool beside_be : {false, true}) {
      OpenLoop::Service service = Service(0.3, true);
      service.queues = queues;
      OpenLoop loop("adaptive", service);
      if (beside_be) loop.AddBe({.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs});
      ASSERT_NO_FATAL_FAILURE(RunBurst(loop));
      EXPECT_LE(LongestAnswerNs(loop), kTargetNs + kSoloNs)
          << queues << " queues, beside BE: " << beside_be;
      EXPECT_GE(AnswersInTime(loop), 4'100);
    }
  }
}

// As before, where each query had its place in the queue and nothing was dropped.
TEST(LateQueriesTest, WithinTheLoadOfTheDeviceNoQueryIsDropped) {
  OpenLoop loop("adaptive", Service(0.5, true));
  loop.AddBe({.duration_ns = 5 * kMs, .block_task_ns = 27 * kUs});
  ASSERT_NO_FATAL_FAILURE(loop.Run(5'000));
  EXPECT_LE(loop.dropped(), 5);
}

// Short queries go to the device in a row: it has none to wait for.
TEST(LateQueriesTest, ManyShortQueriesAreOnTheDeviceAtOnceWhereTimeIsLeft) {
  OpenLoop::Service service = Service(0.9, true);
  service.solo_ns = 20 * kUs;
  OpenLoop loop("adaptive", service);
  ASSERT_NO_FATAL_FAILURE(loop.Run(5'000));
  EXPECT_EQ(loop.dropped(), 0);
}

class LateQueriesFlowTest : public SimulatedSchedulerTest {
 protected:
  void Start(int64_t target_ns) {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    graph_ = *scheduler_->RegisterKernel(Graph("query", kMs));
    AppOptions options = {.name = "service", .app_class = AppClass::kLatencyCritical};
    options.promise.target_ns = target_ns;
    options.drop_late = true;
    app_ = *scheduler_->CreateApp(options);
    queue_ = *scheduler_->CreateQueue(app_);
  }
  TicketId Submit(QueryId query = {}) {
    TaskSpec spec;
    spec.queue = queue_;
    spec.query = query;
    spec.kernel = graph_;
    spec.work.kind = TaskKind::kGraph;
    return *scheduler_->SubmitLc(spec);
  }
  // The model knows the graph from now on.
  void Measure() {
    for (int i = 0; i < 5; ++i) ASSERT_EQ(VerdictOf(Submit()), Verdict::kOk);
  }
  Verdict VerdictOf(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
    return scheduler_->Record(ticket)->verdict;
  }

  KernelId graph_;
  AppId app_;
  QueueId queue_;
};

// A query is dropped whole. One that has begun ends, however late.
TEST_F(LateQueriesFlowTest, AQueryIsDroppedWithAllItsTasksOrNotAtAll) {
  ASSERT_NO_FATAL_FAILURE(Start(5 * kMs));
  ASSERT_NO_FATAL_FAILURE(Measure());
  std::vector<TicketId> tickets;
  for (int i = 0; i < 6; ++i) {
    const QueryId query = *scheduler_->BeginQuery(queue_, 0, 0);
    for (int task = 0; task < 2; ++task) tickets.push_back(Submit(query));
    ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  }
  int answered = 0;
  for (size_t i = 0; i < tickets.size(); i += 2) {
    const Verdict first = VerdictOf(tickets[i]);
    EXPECT_EQ(VerdictOf(tickets[i + 1]), first) << "query " << i / 2;
    answered += first == Verdict::kOk ? 1 : 0;
  }
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(scheduler_->StatsOf(app_)->dropped, 8);
}

// Nobody could measure the work if it were dropped for what it is thought to take.
TEST_F(LateQueriesFlowTest, AQueryThatCannotMeetItsTargetStillRuns) {
  ASSERT_NO_FATAL_FAILURE(Start(kMs / 2));
  ASSERT_NO_FATAL_FAILURE(Measure());
  EXPECT_EQ(scheduler_->StatsOf(app_)->dropped, 0);
}

// A ticket that comes too late ends the wait at the deadline, though nothing else happens.
TEST_F(LateQueriesFlowTest, AQueryThatWaitsForATicketIsDroppedAtItsTime) {
  ASSERT_NO_FATAL_FAILURE(Start(5 * kMs));
  ASSERT_NO_FATAL_FAILURE(Measure());
  const KernelId slow = *scheduler_->RegisterKernel(Graph("slow", 50 * kMs));
  const QueueId be = AddQueue(AppClass::kBestEffort, "be");
  const TicketId awaited = SubmitGraph(be, slow, false);
  TaskSpec spec;
  spec.queue = queue_;
  spec.kernel = graph_;
  spec.work.kind = TaskKind::kGraph;
  spec.wait_tickets = {&awaited, 1};
  const TimeNs begin_ns = scheduler_->NowNs();
  const TicketId waiting = *scheduler_->SubmitLc(spec);
  EXPECT_EQ(VerdictOf(waiting), Verdict::kDropped);
  EXPECT_LE(scheduler_->Record(waiting)->complete_ns, begin_ns + 5 * kMs);
}

}  // namespace
}  // namespace gpushare::core
