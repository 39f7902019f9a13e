// Token streams: what marks count, which streams an app may have, and what a bound on distances
// between tokens does. The whole flow on the simulated device, virtual time, one thread.

#include "src/core/state/token_streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"
#include "tests/core/plan_with.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStepNs = 2 * kMs;

class TokenStreamsTest : public ::testing::Test {
 protected:
  void Make(const AppOptions& changes) { Make(changes, *MakePolicy("adaptive")); }
  void Make(const AppOptions& changes, std::unique_ptr<Policy> policy) {
    auto device = sim::MakeSimDevice({});
    ASSERT_TRUE(device.ok());
    auto model = models::MakeOnlineModel((*device)->capabilities().profile);
    auto made = Scheduler::Create(SchedulerOptions(), *std::move(device), std::move(model),
                                  std::move(policy));
    ASSERT_TRUE(made.ok());
    scheduler = *std::move(made);
    AppOptions options = changes;
    options.name = "engine";
    options.app_class = AppClass::kLatencyCritical;
    app = *scheduler->CreateApp(options);
    queue = *scheduler->CreateQueue(app);
    KernelDesc graph;
    graph.name = "step";
    graph.code = GraphCode();
    graph.simulation.present = true;
    graph.simulation.nodes = {{kStepNs, 132, 1, true, {}}};
    step.kernel = *scheduler->RegisterKernel(graph);
    step.work.kind = TaskKind::kGraph;
    step.queue = queue;
    graph.name = "prefill";
    graph.simulation.nodes[0].duration_ns = 200 * kMs;
    prefill = step;
    prefill.kernel = *scheduler->RegisterKernel(graph);
  }
  void SetUp() override { Make(AppOptions()); }

  TokenStreamId Begin(TimeNs arrival_ns = 0) {
    return scheduler->BeginTokenStream(app, arrival_ns).value();
  }
  void Wait(TicketId ticket) { ASSERT_TRUE(scheduler->Wait(ticket, kNever).ok()); }
  // A step that gives the streams a token.
  void Step(const std::vector<TokenStreamId>& streams) { Run(step, streams); }
  void Run(const TaskSpec& spec, const std::vector<TokenStreamId>& streams) {
    const TicketId ticket = scheduler->SubmitLc(spec).value();
    ASSERT_TRUE(scheduler->MarkTokens(streams, ticket).ok());
    Wait(ticket);
    ASSERT_TRUE(scheduler->ReleaseTicket(ticket).ok());
  }
  void Pass(int64_t ns) { ASSERT_TRUE(scheduler->PollUntil(scheduler->NowNs() + ns).ok()); }
  AppGuarantee Guarantee() { return *scheduler->GuaranteeOf(app); }

  std::unique_ptr<Scheduler> scheduler;
  AppId app;
  QueueId queue;
  TaskSpec step;
  TaskSpec prefill;  // of 200 ms
};

// The window's resolution is 1/64.
void ExpectNear(int64_t value_ns, int64_t expected_ns) {
  EXPECT_NEAR(static_cast<double>(value_ns), static_cast<double>(expected_ns),
              0.04 * static_cast<double>(expected_ns));
}

TEST_F(TokenStreamsTest, TheFirstMarkCountsFromTheArrivalAndOthersFromTheLastOne) {
  Pass(50 * kMs);
  const TokenStreamId stream = Begin(scheduler->NowNs() - 20 * kMs);
  EXPECT_EQ(Guarantee().token_streams, 1);
  Step({stream});
  EXPECT_EQ(Guarantee().first_tokens, 1);
  EXPECT_EQ(Guarantee().token_distances, 0);
  ExpectNear(Guarantee().ttft_p99_ns, 20 * kMs + kStepNs);
  for (int s = 0; s < 10; ++s) {
    Pass(kMs);
    Step({stream});
  }
  EXPECT_EQ(Guarantee().first_tokens, 1);
  EXPECT_EQ(Guarantee().token_distances, 10);
  ExpectNear(Guarantee().tbt_p50_ns, kMs + kStepNs);
  ASSERT_TRUE(scheduler->EndTokenStream(stream).ok());
  EXPECT_EQ(Guarantee().token_streams, 0);
}

// Another request's prefill between two steps makes the distance longer than any query is.
TEST_F(TokenStreamsTest, AStepGivesManyStreamsATokenAndAPrefillBetweenCounts) {
  const std::vector<TokenStreamId> streams = {Begin(), Begin(), Begin()};
  Step(streams);
  Step({});  // a prefill of another request
  Step(streams);
  EXPECT_EQ(Guarantee().first_tokens, 3);
  EXPECT_EQ(Guarantee().token_distances, 3);
  ExpectNear(Guarantee().tbt_p99_ns, 2 * kStepNs);
}

TEST_F(TokenStreamsTest, AMarkBehindTheEndOfItsTaskCountsAtThatEnd) {
  const TokenStreamId stream = Begin();
  const TicketId first = scheduler->SubmitLc(step).value();
  Wait(first);
  Pass(40 * kMs);
  ASSERT_TRUE(scheduler->MarkTokens({&stream, 1}, first).ok());
  ExpectNear(Guarantee().ttft_p99_ns, kStepNs);
  ASSERT_TRUE(scheduler->ReleaseTicket(first).ok());
}

// The second token's mark comes first, and the third one is 10 ms behind it.
TEST_F(TokenStreamsTest, AMarkOfAnEarlierTaskMovesNoTokenBack) {
  const TokenStreamId stream = Begin();
  const TicketId first = scheduler->SubmitLc(step).value();
  Wait(first);
  Pass(40 * kMs);
  Step({stream});
  ASSERT_TRUE(scheduler->MarkTokens({&stream, 1}, first).ok());
  Pass(8 * kMs);
  Step({stream});
  ExpectNear(Guarantee().tbt_p99_ns, 10 * kMs);
}

TEST_F(TokenStreamsTest, ATaskThatFailsOrAStreamThatHasEndedGivesNoToken) {
  const TokenStreamId stream = Begin();
  const TokenStreamId ended = Begin();
  ASSERT_TRUE(scheduler->Quiesce(kNever).ok());
  const TicketId cancelled = scheduler->SubmitLc(step).value();
  ASSERT_TRUE(scheduler->MarkTokens({&stream, 1}, cancelled).ok());
  ASSERT_TRUE(scheduler->Cancel(cancelled).ok());
  ASSERT_TRUE(scheduler->Resume().ok());
  Wait(cancelled);
  EXPECT_EQ(Guarantee().first_tokens, 0);
  const TicketId ticket = scheduler->SubmitLc(step).value();
  ASSERT_TRUE(scheduler->MarkTokens({&ended, 1}, ticket).ok());
  ASSERT_TRUE(scheduler->EndTokenStream(ended).ok());
  Wait(ticket);
  EXPECT_EQ(Guarantee().first_tokens, 0);
}

TEST_F(TokenStreamsTest, WhatIsStaleOrBestEffortIsRefused) {
  const TokenStreamId stream = Begin();
  const TicketId ticket = scheduler->SubmitLc(step).value();
  ASSERT_TRUE(scheduler->EndTokenStream(stream).ok());
  EXPECT_EQ(scheduler->EndTokenStream(stream).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler->EndTokenStream(TokenStreamId{}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler->EndTokenStream(TokenStreamId{~uint64_t{0}}).code(),
            absl::StatusCode::kInvalidArgument);
  const std::vector<TokenStreamId> streams = {Begin(), stream};
  EXPECT_EQ(scheduler->MarkTokens(streams, ticket).code(), absl::StatusCode::kInvalidArgument);
  Wait(ticket);
  EXPECT_EQ(Guarantee().first_tokens, 0) << "all are marked or none";
  ASSERT_TRUE(scheduler->ReleaseTicket(ticket).ok());
  EXPECT_EQ(scheduler->MarkTokens({streams.data(), 1}, ticket).code(),
            absl::StatusCode::kInvalidArgument);
  AppOptions options;
  options.name = "batch";
  const AppId batch = *scheduler->CreateApp(options);
  EXPECT_EQ(scheduler->BeginTokenStream(batch, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler->BeginTokenStream(app, -1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TokenStreamsTest, StreamsThatNobodyEndsMakeRoomAfterTheIdleTimeout) {
  AppOptions options;
  options.tasks_max = 4;
  options.idle_timeout_ns = 10 * kMs;
  Make(options);
  std::vector<TokenStreamId> streams;
  for (int s = 0; s < 4; ++s) streams.push_back(Begin());
  EXPECT_EQ(scheduler->BeginTokenStream(app, 0).status().code(),
            absl::StatusCode::kResourceExhausted);
  Pass(9 * kMs);
  Step({streams[0]});
  EXPECT_TRUE(scheduler->BeginTokenStream(app, 0).ok());
  EXPECT_EQ(Guarantee().token_streams, 2) << "the one with a token, and the new one";
  EXPECT_EQ(*scheduler->AbandonQueries(app, 0), 2);
  EXPECT_EQ(Guarantee().token_streams, 0);
}

// The one with the oldest token makes room, whatever was begun first; another app's stay.
TEST_F(TokenStreamsTest, OnlyQuietStreamsOfTheAppMakeRoom) {
  AppOptions options;
  options.tasks_max = 3;
  options.idle_timeout_ns = 20 * kMs;
  Make(options);
  AppOptions other;
  other.name = "other";
  other.app_class = AppClass::kLatencyCritical;
  const AppId other_app = *scheduler->CreateApp(other);
  const TokenStreamId others = *scheduler->BeginTokenStream(other_app, 0);
  const std::vector<TokenStreamId> streams = {Begin(), Begin(), Begin()};
  Pass(5 * kMs);
  Step({streams[1]});
  Pass(5 * kMs);
  Step({streams[0]});
  ASSERT_TRUE(scheduler->EndTokenStream(streams[2]).ok());
  const TokenStreamId fourth = Begin();
  Pass(14 * kMs);  // 21 ms after the token of streams[1], 14 after those of the others
  EXPECT_TRUE(scheduler->BeginTokenStream(app, 0).ok());
  EXPECT_EQ(scheduler->EndTokenStream(streams[1]).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(scheduler->EndTokenStream(streams[0]).ok());
  EXPECT_TRUE(scheduler->EndTokenStream(fourth).ok());
  EXPECT_EQ(Guarantee().token_streams, 1);
  EXPECT_TRUE(scheduler->EndTokenStream(others).ok());
}

TEST_F(TokenStreamsTest, AnAppIsReleasedWithItsStreams) {
  const TokenStreamId stream = Begin();
  ASSERT_TRUE(scheduler->ReleaseQueue(queue).ok());
  ASSERT_TRUE(scheduler->ReleaseApp(app).ok());
  EXPECT_EQ(scheduler->EndTokenStream(stream).code(), absl::StatusCode::kInvalidArgument);
}

// A step of 2 ms every 3 ms. A delay of 400 us is far beyond 5 % of the step, and within 20 % of
// the distance.
TEST_F(TokenStreamsTest, ABoundOnDistancesJudgesByThem) {
  AppOptions options;
  options.promise = {.p99_bound = 1.2, .p99_alone_ns = 3 * kMs};
  options.bounds_tokens = true;
  Make(options);
  TokenStreamId stream = Begin();
  for (int s = 0; s < 200; ++s) {
    Step({stream});
    Pass(s == 100 ? 3 * kMs : kMs);
    if (s != 150) continue;
    // Two requests of long prompts come when nobody waits for a token.
    ASSERT_TRUE(scheduler->EndTokenStream(stream).ok());
    for (int p = 0; p < 2; ++p) Run(prefill, {});
    EXPECT_FALSE(Guarantee().bound_lost) << "their 200 ms are no distance";
    stream = Begin();
  }
  const AppGuarantee guarantee = Guarantee();
  ASSERT_TRUE(guarantee.p99_over_alone.has_value());
  EXPECT_NEAR(*guarantee.p99_over_alone, 1, 0.05) << "of distances";
  ASSERT_TRUE(guarantee.late_share.has_value());
  EXPECT_NEAR(*guarantee.late_share, 1.0 / 198, 1e-9);
  ExpectNear(guarantee.p99_ns, kStepNs);
  AppOptions both;
  both.name = "both";
  both.app_class = AppClass::kLatencyCritical;
  both.promise = {.target_ns = kMs, .p99_bound = 1.2};
  both.bounds_tokens = true;
  EXPECT_EQ(scheduler->CreateApp(both).status().code(), absl::StatusCode::kInvalidArgument);
}

// A BE graph of 20 ms delays a prefill of another request; the step behind it meets no BE work.
TEST_F(TokenStreamsTest, BeWorkThatDelaysAPrefillMakesTheNextTokenLate) {
  AppOptions options;
  options.promise = {.p99_bound = 1.2, .p99_alone_ns = 5 * kMs};
  options.bounds_tokens = true;
  Make(options, std::make_unique<PlanWith>([](const Snapshot& snapshot, Plan& plan) {
         for (const HeadView& head : snapshot.heads) {
           PlannedLaunch& launch = plan.launches.Add();
           launch.task = head.task;
           launch.form = Form::kGraph;
         }
       }));
  AppOptions batch;
  batch.name = "batch";
  TaskSpec train = step;
  train.queue = *scheduler->CreateQueue(*scheduler->CreateApp(batch));
  KernelDesc graph;
  graph.name = "train";
  graph.code = GraphCode();
  graph.simulation.present = true;
  graph.simulation.nodes = {{20 * kMs, 132, 1, true, {}}};
  train.kernel = *scheduler->RegisterKernel(graph);
  const TokenStreamId stream = Begin();
  for (int s = 0; s < 10; ++s) {
    Step({stream});
    Pass(kMs);
  }
  EXPECT_EQ(Guarantee().queries_late_not_alone, 0);
  const TicketId be = scheduler->SubmitBe(train).value();
  Pass(kMs / 10);
  Step({});  // a prefill
  ASSERT_TRUE(*scheduler->IsComplete(be));
  Step({stream});
  EXPECT_GT(Guarantee().tbt_p99_ns, 15 * kMs);
  EXPECT_EQ(Guarantee().queries_late_not_alone, 1);
  Pass(20 * kMs);
  Step({stream});
  EXPECT_EQ(Guarantee().queries_late_not_alone, 1) << "the application paused";
}

}  // namespace
}  // namespace gpushare::core
