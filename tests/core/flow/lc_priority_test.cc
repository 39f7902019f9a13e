// LC apps of different priority: who goes first, and who yields between two segments. On the
// simulated device.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/events.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kNodeNs = 10 * kUs;
constexpr int32_t kNodes = 400;
constexpr int64_t kPrefillNs = kNodes * kNodeNs;
constexpr int64_t kDecodeNs = 500 * kUs;
constexpr int64_t kSegmentNs = 100 * kUs;

class CollectingSink final : public EventSink {
 public:
  void Append(const EventRecord& record) override { records.push_back(record); }
  std::vector<EventRecord> records;
};

class LcPriorityTest : public SimulatedSchedulerTest {
 protected:
  void Open(const std::string& policy, int32_t decode_priority, int32_t prefill_priority,
            int64_t yield_ns_max) {
    scheduler_ = nullptr;  // of an earlier call
    events_.records.clear();
    SchedulerOptions options;
    options.events = &events_;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy), options));
    KernelDesc prefill = Graph("prefill", kNodeNs);
    prefill.simulation.nodes[0].repeat = kNodes;
    prefill_graph_ = *scheduler_->RegisterKernel(prefill);
    decode_graph_ = *scheduler_->RegisterKernel(Graph("decode", kDecodeNs));
    AppOptions decode{.name = "decode", .app_class = AppClass::kLatencyCritical};
    decode.priority = decode_priority;
    decode_app_ = *scheduler_->CreateApp(decode);
    decode_ = *scheduler_->CreateQueue(decode_app_);
    AppOptions other{.name = "prefill", .app_class = AppClass::kLatencyCritical};
    other.priority = prefill_priority;
    other.yield_ns_max = yield_ns_max;
    prefill_app_ = *scheduler_->CreateApp(other);
    prefill_ = *scheduler_->CreateQueue(prefill_app_);
  }
  TicketId Prefill() { return SubmitGraph(prefill_, prefill_graph_, true); }
  TicketId Decode() { return SubmitGraph(decode_, decode_graph_, true); }
  void Pass(int64_t ns) { ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + ns).ok()); }
  CompletionRecord Finish(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1'000 * kMs).ok());
    const CompletionRecord record = *scheduler_->Record(ticket);
    EXPECT_EQ(record.verdict, Verdict::kOk);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    EXPECT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
    return record;
  }
  static int64_t LatencyNs(const CompletionRecord& record) {
    return record.complete_ns - record.submit_ns;
  }
  // The slowest of so many decode steps with a gap between them.
  int64_t SlowestDecode(int steps, int64_t gap_ns = 337 * kUs) {
    int64_t slowest_ns = 0;
    for (int i = 0; i < steps; ++i) {
      Pass(gap_ns);
      slowest_ns = std::max(slowest_ns, LatencyNs(Finish(Decode())));
    }
    return slowest_ns;
  }
  int64_t YieldedNs() const { return scheduler_->GuaranteeOf(prefill_app_)->yielded_ns; }
  // Tickets in the order of their first launches.
  std::vector<TicketId> LaunchOrder() const {
    std::vector<TicketId> order;
    for (const EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) != EventType::kLaunched) continue;
      const TicketId ticket{record.id};
      if (std::find(order.begin(), order.end(), ticket) == order.end()) order.push_back(ticket);
    }
    return order;
  }
  // Two tasks that become ready together, when a third one ends.
  std::vector<TicketId> SubmitTogether(TicketId* first) {
    *first = SubmitGraph(AddQueue(AppClass::kBestEffort, "gate"), decode_graph_, false);
    std::vector<TicketId> tickets;
    for (const auto& [queue, graph] :
         {std::pair{prefill_, prefill_graph_}, std::pair{decode_, decode_graph_}}) {
      TaskSpec spec;
      spec.queue = queue;
      spec.kernel = graph;
      spec.work.kind = TaskKind::kGraph;
      spec.wait_tickets = absl::MakeConstSpan(first, 1);
      tickets.push_back(*scheduler_->SubmitLc(spec));
    }
    return tickets;
  }

  CollectingSink events_;
  KernelId prefill_graph_;
  KernelId decode_graph_;
  AppId decode_app_;
  AppId prefill_app_;
  QueueId decode_;
  QueueId prefill_;
};

TEST_F(LcPriorityTest, OfHeadsThatAreReadyTogetherTheHigherPriorityGoesFirst) {
  for (const char* const policy : {"adaptive", "baymax", "smguard", "priority", "kernelet"}) {
    SCOPED_TRACE(policy);
    Open(policy, 2, 1, 0);
    TicketId gate;
    const std::vector<TicketId> tickets = SubmitTogether(&gate);  // prefill first
    for (const TicketId ticket : tickets) Finish(ticket);
    EXPECT_EQ(LaunchOrder(), (std::vector<TicketId>{gate, tickets[1], tickets[0]}));
    Finish(gate);
  }
}

TEST_F(LcPriorityTest, OfOnePriorityTheOrderIsThatOfSubmission) {
  Open("adaptive", 5, 5, 0);
  TicketId gate;
  const std::vector<TicketId> tickets = SubmitTogether(&gate);
  for (const TicketId ticket : tickets) Finish(ticket);
  EXPECT_EQ(LaunchOrder(), (std::vector<TicketId>{gate, tickets[0], tickets[1]}));
  Finish(gate);
}

TEST_F(LcPriorityTest, AnUpdateOfThePriorityCountsFromTheNextPlanOn) {
  Open("adaptive", 0, 0, 0);
  ASSERT_TRUE(scheduler_->UpdateApp(decode_app_, {.priority = 1}).ok());
  TicketId gate;
  const std::vector<TicketId> tickets = SubmitTogether(&gate);
  for (const TicketId ticket : tickets) Finish(ticket);
  EXPECT_EQ(LaunchOrder(), (std::vector<TicketId>{gate, tickets[1], tickets[0]}));
  Finish(gate);
  EXPECT_FALSE(scheduler_->UpdateApp(decode_app_, {.priority = kMaxPriority + 1}).ok());
}

// Alone a step takes 0.5 ms. It waits at most for the segments on the device.
TEST_F(LcPriorityTest, AYieldingGraphLeavesForAHigherPriority) {
  for (const char* const policy : {"adaptive", "baymax", "smguard", "priority"}) {
    SCOPED_TRACE(policy);
    Open(policy, 1, 0, kNever);
    const TicketId prefill = Prefill();
    EXPECT_LT(SlowestDecode(5), kDecodeNs + kSegmentsOutstanding * kSegmentNs + 30 * kUs);
    const CompletionRecord record = Finish(prefill);
    EXPECT_EQ(record.form, Form::kSegments);
    EXPECT_EQ(record.block_tasks, scheduler_->FindKernel(prefill_graph_)->segments());
    EXPECT_EQ(record.evictions, 5);
    EXPECT_GT(YieldedNs(), 5 * (kDecodeNs - kSegmentsOutstanding * kSegmentNs - 50 * kUs));
    EXPECT_LT(YieldedNs(), 5 * kDecodeNs);
    EXPECT_LT(LatencyNs(record), kPrefillNs + 5 * (kDecodeNs + kSegmentNs) + kMs);
  }
}

TEST_F(LcPriorityTest, AnAppThatDoesNotYieldRunsWholeBesideAHigherPriority) {
  Open("adaptive", 1, 0, 0);
  const TicketId prefill = Prefill();
  SlowestDecode(3);
  const CompletionRecord record = Finish(prefill);
  EXPECT_EQ(record.form, Form::kGraph);
  EXPECT_EQ(record.evictions, 0);
}

TEST_F(LcPriorityTest, NobodyYieldsToAnEqualOrLowerPriority) {
  for (const int32_t decode : {0, -1}) {
    Open("adaptive", decode, 0, kNever);
    const TicketId prefill = Prefill();
    SlowestDecode(3);
    const CompletionRecord record = Finish(prefill);
    EXPECT_EQ(record.form, Form::kSegments);
    EXPECT_EQ(record.evictions, 0);
    EXPECT_EQ(YieldedNs(), 0);
  }
}

// Steps without a gap leave no time for a graph that yields for ever.
TEST_F(LcPriorityTest, ATaskThatHasWaitedEnoughGoesOnAndStays) {
  Open("adaptive", 1, 0, 2 * kMs);
  KernelDesc chain = Graph("chain", kDecodeNs / 16);
  chain.simulation.nodes[0].repeat = 16;
  decode_graph_ = *scheduler_->RegisterKernel(chain);
  std::vector<TicketId> steps;
  Pass(kMs);
  for (int i = 0; i < 60; ++i) steps.push_back(Decode());
  const TicketId prefill = Prefill();
  const CompletionRecord record = Finish(prefill);
  EXPECT_EQ(record.evictions, 0);
  EXPECT_NEAR(static_cast<double>(YieldedNs()), 2e6, 1e4);
  EXPECT_NEAR(static_cast<double>(record.launch_ns - record.submit_ns), 2e6, 1e4);
  EXPECT_FALSE(scheduler_->Record(steps.back()).ok()) << "steps go on";
  for (const TicketId step : steps) Finish(step);
}

// Its whole wait counts, in as many parts as it comes.
TEST_F(LcPriorityTest, TheWaitOfATaskIsBoundedOverAllEvictions) {
  Open("adaptive", 1, 0, 3 * kDecodeNs);
  const TicketId prefill = Prefill();
  SlowestDecode(20);
  const CompletionRecord record = Finish(prefill);
  EXPECT_GE(record.evictions, 3);
  EXPECT_LT(record.evictions, 10);
  EXPECT_NEAR(static_cast<double>(YieldedNs()), 3 * kDecodeNs, 100 * kUs);
}

// A query that waits for the graph's ticket would wait for ever.
TEST_F(LcPriorityTest, AQueryThatOnlyWaitsForTheGraphIsNotYieldedTo) {
  Open("adaptive", 1, 0, kNever);
  const TicketId prefill = Prefill();
  TaskSpec spec;
  spec.queue = decode_;
  spec.kernel = decode_graph_;
  spec.work.kind = TaskKind::kGraph;
  spec.wait_tickets = absl::MakeConstSpan(&prefill, 1);
  const TicketId step = *scheduler_->SubmitLc(spec);
  const CompletionRecord record = Finish(step);
  EXPECT_LT(LatencyNs(record), kPrefillNs + kDecodeNs + kMs);
  EXPECT_EQ(Finish(prefill).evictions, 0);
}

TEST_F(LcPriorityTest, QueriesOfAYieldingAppStayInOrder) {
  Open("adaptive", 1, 0, kNever);
  std::vector<TicketId> prefills;
  for (int i = 0; i < 3; ++i) prefills.push_back(Prefill());
  SlowestDecode(12);
  TimeNs ended_ns = 0;
  for (const TicketId prefill : prefills) {
    const CompletionRecord record = Finish(prefill);
    EXPECT_GT(record.start_ns, ended_ns);
    ended_ns = record.end_ns;
  }
}

TEST_F(LcPriorityTest, TheBaselinesRunAYieldingGraphAsItComes) {
  for (const char* const policy : {"bare", "fifo"}) {
    SCOPED_TRACE(policy);
    Open(policy, 1, 0, kNever);
    const TicketId prefill = Prefill();
    SlowestDecode(3);
    const CompletionRecord record = Finish(prefill);
    EXPECT_EQ(record.form, Form::kGraph);
    EXPECT_EQ(record.evictions, 0);
  }
}

TEST_F(LcPriorityTest, AYieldingGraphHasACaptureOfItsOwn) {
  Open("adaptive", 1, 0, kNever);
  Finish(Prefill());
  TaskSpec spec;
  spec.queue = decode_;
  spec.kernel = prefill_graph_;
  spec.work.kind = TaskKind::kGraph;
  EXPECT_EQ(scheduler_->SubmitLc(spec).status().message(),
            "Graph 'prefill' runs in segments for latency-critical apps that yield, and a task of "
            "a latency-critical app would use the same buffers; register a second capture for it.");
}

// BE work runs beside idle LC apps, and neither is lost.
TEST_F(LcPriorityTest, AShutdownRunsWhatYields) {
  Open("adaptive", 1, 0, kNever);
  const TicketId prefill = Prefill();
  const auto open = scheduler_->BeginQuery(decode_, scheduler_->NowNs(), 0);
  ASSERT_TRUE(open.ok());
  Pass(kMs);
  EXPECT_FALSE(scheduler_->Record(prefill).ok()) << "it waits";
  ASSERT_TRUE(scheduler_->EndQuery(*open).ok());
  ASSERT_TRUE(scheduler_->Shutdown(scheduler_->NowNs() + 100 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(prefill)->verdict, Verdict::kOk);
}

// It has no time to run to its end, and leaves between two segments instead of being given up.
TEST_F(LcPriorityTest, AShutdownThatIsCutOffEvictsWhatYields) {
  Open("adaptive", 1, 0, kNever);
  const TicketId prefill = Prefill();
  Pass(kMs);
  EXPECT_EQ(scheduler_->Shutdown(scheduler_->NowNs() + kMs).code(),
            absl::StatusCode::kDeadlineExceeded);
  const CompletionRecord record = *scheduler_->Record(prefill);
  EXPECT_EQ(record.verdict, Verdict::kShutdown);
  EXPECT_EQ(record.evictions, 1);
}

// Random arrivals of both apps and of BE work: each task ends once, each segment runs once.
TEST_F(LcPriorityTest, NothingIsLostOrRunTwice) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Open(seed % 3 == 0 ? "baymax" : "adaptive", 1, 0, seed % 2 == 0 ? kNever : 5 * kMs);
    const QueueId train = AddQueue(AppClass::kBestEffort, "train");
    const KernelId work = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    std::vector<TicketId> decodes;
    std::vector<TicketId> prefills;
    std::vector<TicketId> trainings;
    for (int i = 0; i < 150; ++i) {
      const uint64_t kind = random() % 8;
      if (kind < 5) {
        decodes.push_back(Decode());
      } else if (kind < 6) {
        prefills.push_back(Prefill());
      } else {
        TaskSpec spec;
        spec.queue = train;
        spec.kernel = work;
        spec.work.block_tasks = int64_t{132} * 8 * 20;
        trainings.push_back(*scheduler_->SubmitBe(spec));
      }
      Pass(static_cast<int64_t>(random() % (1500 * kUs)));
      ASSERT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
    }
    const int32_t segments = scheduler_->FindKernel(prefill_graph_)->segments();
    for (const TicketId ticket : decodes) Finish(ticket);
    for (const TicketId ticket : prefills) EXPECT_EQ(Finish(ticket).block_tasks, segments);
    for (const TicketId ticket : trainings) Finish(ticket);
    const AppStats stats = *scheduler_->StatsOf(prefill_app_);
    EXPECT_EQ(stats.completed, static_cast<int64_t>(prefills.size()));
    EXPECT_EQ(stats.block_tasks, static_cast<int64_t>(prefills.size()) * segments);
  }
}

// The higher priority is never idle. What bounds the wait is the query's, however many tasks it
// has.
TEST_F(LcPriorityTest, TheTasksOfAQueryWaitForYieldNsMaxInAll) {
  constexpr int64_t kMostNs = 4 * kMs;
  Open("adaptive", 1, 0, kMostNs);
  const auto keep_busy = [&] {
    TaskSpec spec;
    spec.queue = decode_;
    spec.kernel = decode_graph_;
    spec.work.kind = TaskKind::kGraph;
    spec.detached = true;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  };
  keep_busy();
  const QueryId query = *scheduler_->BeginQuery(prefill_, 0, 0);
  std::vector<TicketId> tasks;
  for (int i = 0; i < 4; ++i) {
    TaskSpec spec;
    spec.queue = prefill_;
    spec.query = query;
    spec.kernel = prefill_graph_;
    spec.work.kind = TaskKind::kGraph;
    tasks.push_back(*scheduler_->SubmitLc(spec));
  }
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  for (const TicketId task : tasks) {
    while (!*scheduler_->IsComplete(task)) {
      if (scheduler_->StatsOf(decode_app_)->queue_depth < 4) keep_busy();
      Pass(kDecodeNs);
    }
  }
  EXPECT_GE(YieldedNs(), kMostNs);
  EXPECT_LE(YieldedNs(), kMostNs + kMs);
}

// Two services with random arrivals, each at load 0.3. Decode is a chain of 16 kernels, prefill one
// of three long ones.
class LcPriorityTailTest : public LcPriorityTest {
 protected:
  int64_t DecodeP99(bool beside, int32_t decode_priority, int64_t yield_ns_max) {
    Open("adaptive", decode_priority, 0, yield_ns_max);
    KernelDesc decode = Graph("chain", kDecodeNs / 16);
    decode.simulation.nodes[0].repeat = 16;
    KernelDesc prefill = Graph("gemms", kDecodeNs / 3);
    prefill.simulation.nodes[0].repeat = 3;
    std::vector<Stream> streams(beside ? 2 : 1);
    streams[0] = {decode_, *scheduler_->RegisterKernel(decode), std::mt19937_64(1)};
    if (beside) streams[1] = {prefill_, *scheduler_->RegisterKernel(prefill), std::mt19937_64(2)};
    latencies_ns_.clear();
    while (static_cast<int>(latencies_ns_.size()) < 3000) {
      Stream& next = beside && streams[1].at_ns < streams[0].at_ns ? streams[1] : streams[0];
      std::exponential_distribution<double> gap(0.3 / static_cast<double>(kDecodeNs));
      EXPECT_TRUE(scheduler_->PollUntil(std::max(next.at_ns, scheduler_->NowNs())).ok());
      TaskSpec spec;
      spec.queue = next.queue;
      spec.kernel = next.graph;
      spec.work.kind = TaskKind::kGraph;
      spec.detached = true;
      if (&next == &streams[0]) spec.callback = &NoteLatency;
      spec.callback_user = &latencies_ns_;
      EXPECT_TRUE(scheduler_->SubmitLc(spec).ok());
      next.at_ns += static_cast<int64_t>(gap(next.random));
    }
    std::sort(latencies_ns_.begin(), latencies_ns_.end());
    return latencies_ns_[latencies_ns_.size() * 99 / 100];
  }

 private:
  struct Stream {
    QueueId queue;
    KernelId graph;
    std::mt19937_64 random;
    TimeNs at_ns = 0;
  };
  static void NoteLatency(void* user, const CompletionRecord& record) {
    static_cast<std::vector<int64_t>*>(user)->push_back(record.complete_ns - record.submit_ns);
  }
  std::vector<int64_t> latencies_ns_;
};

TEST_F(LcPriorityTailTest, DecodeBesideAYieldingPrefillKeepsItsTail) {
  const auto alone = static_cast<double>(DecodeP99(false, 0, 0));
  EXPECT_GT(static_cast<double>(DecodeP99(true, 0, 0)) / alone, 2);
  EXPECT_LT(static_cast<double>(DecodeP99(true, 1, 20 * kMs)) / alone, 1.3);
}

// The same work with all priorities at 0, and with all at 7: the same events at the same times.
TEST_F(LcPriorityTest, EqualPrioritiesPlanAsNoPriorities) {
  std::vector<EventRecord> without;
  for (const int32_t priority : {0, 7}) {
    Open("adaptive", priority, priority, 0);
    const QueueId train = AddQueue(AppClass::kBestEffort, "train");
    const KernelId work = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    std::mt19937_64 random(3);
    std::vector<TicketId> tickets;
    for (int i = 0; i < 300; ++i) {
      TaskSpec spec;
      spec.queue = train;
      spec.kernel = work;
      spec.work.block_tasks = int64_t{132} * 8 * 20;
      if (i % 3 == 0) tickets.push_back(*scheduler_->SubmitBe(spec));
      tickets.push_back(random() % 4 == 0 ? Prefill() : Decode());
      Pass(static_cast<int64_t>(random() % (3 * kMs)));
    }
    for (const TicketId ticket : tickets) Finish(ticket);
    for (EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) == EventType::kAppCreated) record.detail = 0;
    }
    if (priority == 0) without = events_.records;
  }
  ASSERT_EQ(events_.records.size(), without.size());
  for (size_t i = 0; i < without.size(); ++i) {
    ASSERT_EQ(std::memcmp(&events_.records[i], &without[i], sizeof(EventRecord)), 0) << i;
  }
}

}  // namespace
}  // namespace gpushare::core
