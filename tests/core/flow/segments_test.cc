// A BE graph in segments through the whole flow: evicted between two segments, continued in any
// place, complete once; what runs whole, and what runs beside it. On the simulated device.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/log/events.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_model.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kNodeNs = 10 * kUs;
constexpr int32_t kNodes = 1000;
constexpr int64_t kStepNs = kNodes * kNodeNs;
constexpr int64_t kQueryNs = 500 * kUs;

class CollectingSink final : public EventSink {
 public:
  void Append(const EventRecord& record) override { records.push_back(record); }
  std::vector<EventRecord> records;
};

// The online model, and the eviction latencies of graphs that it observed.
class WatchingModel final : public ForwardingModel {
 public:
  WatchingModel(std::unique_ptr<CostModel> model, std::vector<int64_t>& seen,
                std::vector<int64_t>& delays)
      : ForwardingModel(std::move(model)), seen_(seen), delays_(delays) {}
  void Observe(const Observation& observation) override {
    if (observation.evicted && observation.form == Form::kSegments) {
      seen_.push_back(observation.measured_ns);
    }
    ForwardingModel::Observe(observation);
  }
  void ObserveDelay(const DelayedQuery& query) override {
    delays_.push_back(query.added_ns);
    ForwardingModel::ObserveDelay(query);
  }

 private:
  std::vector<int64_t>& seen_;
  std::vector<int64_t>& delays_;
};

class SegmentsTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<WatchingModel>(std::move(model), latencies_, delays_);
  }

  void Open(const std::string& policy, double p99_bound = 0) {
    Open(*MakePolicy(policy), p99_bound);
  }
  void Open(std::unique_ptr<Policy> policy, double p99_bound = 0) {
    SchedulerOptions options;
    options.events = &events_;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy), options));
    KernelDesc step = Graph("step", kNodeNs);
    step.simulation.nodes[0].repeat = kNodes;
    step_ = *scheduler_->RegisterKernel(step);
    KernelDesc query = Graph("query", kQueryNs);
    query.simulation.speed = {{84, 1}, {132, 1}};  // so a split pays
    query_ = *scheduler_->RegisterKernel(query);
    AppOptions service;
    service.name = "service";
    service.app_class = AppClass::kLatencyCritical;
    service.promise.p99_bound = p99_bound;
    service.promise.target_ns = target_ns_;
    service_app_ = *scheduler_->CreateApp(service);
    service_ = *scheduler_->CreateQueue(service_app_);
    train_app_ = *scheduler_->CreateApp({.name = "train", .app_class = AppClass::kBestEffort});
    train_ = *scheduler_->CreateQueue(train_app_);
  }

  // Launches every head in this form.
  static std::unique_ptr<Policy> LaunchAll(Form form, LaneClass lane_class, int64_t blocks_max) {
    return std::make_unique<PlanWith>([=](const Snapshot& snapshot, Plan& plan) {
      for (const HeadView& head : snapshot.heads) {
        PlannedLaunch& launch = plan.launches.Add();
        launch.task = head.task;
        launch.form = form;
        launch.lane_class = lane_class;
        launch.blocks_max = blocks_max;
      }
    });
  }
  CompletionRecord Finish(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 10'000 * kMs).ok());
    const CompletionRecord record = *scheduler_->Record(ticket);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    return record;
  }
  CompletionRecord FinishOk(TicketId ticket) {
    const CompletionRecord record = Finish(ticket);
    EXPECT_EQ(record.verdict, Verdict::kOk);
    return record;
  }
  // Queries one after another, with a gap that meets all phases of a step's segments; the slowest
  // one's latency.
  int64_t SlowestQuery(int queries, int64_t gap_ns = 1037 * kUs) {
    int64_t slowest_ns = 0;
    for (int i = 0; i < queries; ++i) {
      Pass(gap_ns);
      const CompletionRecord query = FinishOk(SubmitGraph(service_, query_, true));
      slowest_ns = std::max(slowest_ns, query.complete_ns - query.submit_ns);
    }
    return slowest_ns;
  }
  std::vector<TicketId> SubmitSteps(KernelId step, int count) {
    std::vector<TicketId> steps;
    for (int i = 0; i < count; ++i) steps.push_back(SubmitGraph(train_, step, false));
    return steps;
  }
  void Pass(int64_t ns) { ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + ns).ok()); }
  // Two queues of an app that always has work, in tasks of so many milliseconds.
  void Flood(KernelId kernel, int64_t task_ms, AppId* app) {
    *app = *scheduler_->CreateApp({.name = "other", .app_class = AppClass::kBestEffort});
    const std::vector<QueueId> queues = {*scheduler_->CreateQueue(*app),
                                         *scheduler_->CreateQueue(*app)};
    for (int i = 0; i < 200; ++i) {
      TaskSpec spec;
      spec.queue = queues[static_cast<size_t>(i % 2)];
      spec.kernel = kernel;
      spec.work.block_tasks = int64_t{132} * 8 * 40 * task_ms;
      spec.detached = true;
      ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
    }
  }
  int32_t Segments() const { return scheduler_->FindKernel(step_)->segments(); }
  std::set<PlaceIndex> PlacesOfSegments() const {
    std::set<PlaceIndex> places;
    for (const EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) != EventType::kLaunched) continue;
      const auto launched = Decode<Launched>(record);
      if (launched.form == Form::kSegments) places.insert(launched.place);
    }
    return places;
  }

  int64_t SegmentsDone(TicketId task) const {
    int64_t done = 0;
    for (const EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) != EventType::kPartDone) continue;
      const auto part = Decode<PartDone>(record);
      if (part.task.ticket == task) done += part.block_tasks_done;
    }
    return done;
  }
  // The most tasks of `step_` that had begun and were not complete at one time.
  size_t MostGraphsBegun() const {
    std::set<uint64_t> begun;
    size_t most = 0;
    for (const EventRecord& record : events_.records) {
      if (static_cast<EventType>(record.type) == EventType::kLaunched) {
        const auto launched = Decode<Launched>(record);
        if (launched.task.kernel == step_) begun.insert(launched.task.ticket.value);
      } else if (static_cast<EventType>(record.type) == EventType::kCompleted) {
        begun.erase(Decode<Completed>(record).task.ticket.value);
      }
      most = std::max(most, begun.size());
    }
    return most;
  }

  CollectingSink events_;
  int64_t target_ns_ = 0;           // of the service
  std::vector<int64_t> latencies_;  // learned
  std::vector<int64_t> delays_;     // likewise, of queries
  KernelId step_, query_;
  AppId service_app_, train_app_;
  QueueId service_, train_;
};

TEST_F(SegmentsTest, ABeGraphRunsInSegmentsOfTheDefaultLength) {
  Open("adaptive");
  EXPECT_EQ(Segments(), kStepNs / kSegmentNs);
  const CompletionRecord record = FinishOk(SubmitGraph(train_, step_, false));
  EXPECT_EQ(record.form, Form::kSegments);
  EXPECT_EQ(record.block_tasks, Segments());
  EXPECT_EQ(record.launches, 1);
  // 2 % for the cuts, as measured on the GPU.
  EXPECT_LT(record.measured_ns, kStepNs * 103 / 100);
}

TEST_F(SegmentsTest, AQueryEvictsTheGraphWhichLosesNoSegment) {
  Open("adaptive:evict");
  const TicketId step = SubmitGraph(train_, step_, false);
  const int64_t slowest_ns = SlowestQuery(8);
  const CompletionRecord record = FinishOk(step);
  EXPECT_EQ(record.evictions, 8);
  EXPECT_EQ(record.launches, 9);
  EXPECT_EQ(record.block_tasks, Segments());
  EXPECT_EQ(SegmentsDone(step), Segments()) << "none twice";
  // The query has priority: it starts at the end of a node, and the segments that were on the
  // device go on behind it.
  EXPECT_LT(slowest_ns, kQueryNs + 2 * kNodeNs + 40 * kUs);
}

TEST_F(SegmentsTest, AnEvictionBeforeTheLastSegmentsLosesNoneOfThem) {
  Open("adaptive:evict");
  for (int i = 0; i < 20; ++i) {
    const TicketId step = SubmitGraph(train_, step_, false);
    Pass(kStepNs - kMs + i * kSegmentNs / 2);
    Finish(SubmitGraph(service_, query_, true));
    const CompletionRecord record = FinishOk(step);
    EXPECT_EQ(record.block_tasks, Segments()) << "evicted at " << i;
  }
}

// What ran before each eviction was alone, whatever came then.
TEST_F(SegmentsTest, EachLaunchAloneOnTheWholeDeviceTeachesTheEvictionLatency) {
  Open("adaptive:evict");
  const TicketId step = SubmitGraph(train_, step_, false);
  SlowestQuery(4);
  Finish(step);
  ASSERT_EQ(latencies_.size(), 5U);
  for (const int64_t latency_ns : latencies_) {
    EXPECT_NEAR(static_cast<double>(latency_ns), kSegmentsOutstanding * kSegmentNs, 5 * kUs);
  }
}

TEST_F(SegmentsTest, ALaunchOnFewerSmsTeachesNoEvictionLatency) {
  Open("adaptive:partition");
  Finish(SubmitGraph(service_, query_, true));
  const TicketId step = SubmitGraph(train_, step_, false);
  Pass(3 * kMs);
  Finish(SubmitGraph(service_, query_, true));
  Finish(step);
  EXPECT_TRUE(latencies_.empty());
}

TEST_F(SegmentsTest, ALaunchThatRanBesideAQueryTeachesNoEvictionLatency) {
  Open("smguard");  // without a reservation it evicts nothing
  const TicketId step = SubmitGraph(train_, step_, false);
  Pass(3 * kMs);
  Finish(SubmitGraph(service_, query_, true));
  EXPECT_EQ(Finish(step).evictions, 0);
  EXPECT_TRUE(latencies_.empty());
}

TEST_F(SegmentsTest, TheGraphsOfLcAppsStayWhole) {
  Open("adaptive");
  const CompletionRecord record = Finish(SubmitGraph(service_, step_, true));
  EXPECT_EQ(record.form, Form::kGraph);
  EXPECT_EQ(record.block_tasks, 1);
}

TEST_F(SegmentsTest, AGraphThatIsNeverCutRunsWholeAndTellsWhy) {
  Open("adaptive");
  KernelDesc step = Graph("whole", kNodeNs);
  step.simulation.nodes[0].repeat = 100;
  step.graph()->segment_ns = -1;
  const KernelId whole = *scheduler_->RegisterKernel(step);
  EXPECT_EQ(scheduler_->FindKernel(whole)->graph()->cut.whole_reason,
            "The kernel option segment_ns asks for the whole graph.");
  EXPECT_FALSE(scheduler_->FindKernel(whole)->evictable);
  const CompletionRecord record = FinishOk(SubmitGraph(train_, whole, false));
  EXPECT_EQ(record.form, Form::kGraph);
}

// Under a policy that never evicts, a graph runs as before.
TEST_F(SegmentsTest, AFifoRunsItWhole) {
  Open("fifo");
  const CompletionRecord record = FinishOk(SubmitGraph(train_, step_, false));
  EXPECT_EQ(record.form, Form::kGraph);
  EXPECT_EQ(record.block_tasks, Segments());
}

// The whole device while no query is active, the BE side while one is.
TEST_F(SegmentsTest, AnElasticGraphMovesBetweenTheWholeDeviceAndTheBeSide) {
  Open("adaptive:elastic", 2);
  Finish(SubmitGraph(service_, query_, true));  // from here on its duration is known
  const std::vector<TicketId> steps = SubmitSteps(step_, 4);
  SlowestQuery(20, 1500 * kUs);
  for (const TicketId step : steps) EXPECT_EQ(FinishOk(step).block_tasks, Segments());
  const std::set<PlaceIndex> places = PlacesOfSegments();
  EXPECT_EQ(places.count(kWholeDevice), 1U);
  EXPECT_GT(places.size(), 1U) << "only place " << *places.begin();
}

TEST_F(SegmentsTest, APartitionKeepsTheGraphOnTheBeSide) {
  Open("adaptive:partition");
  Finish(SubmitGraph(service_, query_, true));
  const TicketId step = SubmitGraph(train_, step_, false);
  Pass(3 * kMs);
  Finish(SubmitGraph(service_, query_, true));
  const CompletionRecord record = FinishOk(step);
  EXPECT_EQ(record.evictions, 0);
  EXPECT_EQ(PlacesOfSegments().count(kWholeDevice), 0U);
}

// Neither a graph in segments nor workers may wait for the other for ever.
TEST_F(SegmentsTest, AGraphAndWorkersOfAnotherAppShareByWeight) {
  Open("adaptive");
  const KernelId kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  AppId other;
  Flood(kernel, 1, &other);
  const std::vector<TicketId> steps = SubmitSteps(step_, 5);
  Pass(60 * kMs);
  const CompletionRecord second = Finish(steps[1]);
  EXPECT_LT(second.complete_ns, 60 * kMs);
  EXPECT_GT(scheduler_->StatsOf(other)->completed, 15);
  EXPECT_TRUE(scheduler_->Drain(scheduler_->NowNs() + 10'000 * kMs).ok());
}

// A graph with memory of one context, for example. The workers fill both sides of the split.
TEST_F(SegmentsTest, AGraphThatNoPartitionHoldsGetsItsTurnsBesideABusyApp) {
  for (const char* policy : {"adaptive:elastic", "adaptive:partition"}) {
    for (const bool evictable : {true, false}) {
      SCOPED_TRACE(absl::StrCat(policy, evictable ? ", evictable" : ", uncuttable"));
      ASSERT_NO_FATAL_FAILURE(Open(policy, 2));
      Finish(SubmitGraph(service_, query_, true));
      KernelDesc step = Graph("unconfinable", kNodeNs);
      step.simulation.nodes[0].repeat = kNodes;
      step.confinable = false;
      const KernelId unconfinable = *scheduler_->RegisterKernel(step);
      KernelDesc kernel = EvictableKernel("work", 25 * kUs);
      kernel.evictable = evictable;
      AppId other;
      Flood(*scheduler_->RegisterKernel(kernel), evictable ? 40 : 4, &other);
      const std::vector<TicketId> steps = SubmitSteps(unconfinable, 3);
      SlowestQuery(200, kMs);
      EXPECT_TRUE(*scheduler_->IsComplete(steps[evictable ? 2 : 0]));
      EXPECT_GT(scheduler_->StatsOf(other)->completed, 2);
      scheduler_ = nullptr;
    }
  }
}

TEST_F(SegmentsTest, ACancelledGraphLeavesAtASegmentsEnd) {
  Open("adaptive");
  const TicketId step = SubmitGraph(train_, step_, false);
  Pass(3 * kMs);
  const TimeNs cancelled_ns = scheduler_->NowNs();
  ASSERT_TRUE(scheduler_->Cancel(step).ok());
  const CompletionRecord record = Finish(step);
  EXPECT_EQ(record.verdict, Verdict::kCancelled);
  EXPECT_GT(record.block_tasks, 0);
  EXPECT_LT(record.block_tasks, Segments());
  EXPECT_LT(record.complete_ns - cancelled_ns, (kSegmentsOutstanding + 1) * kSegmentNs);
}

// Both tasks write the same buffers, which belong to the capture.
TEST_F(SegmentsTest, ASecondTaskOfAGraphNeverStartsBeforeTheFirstIsComplete) {
  for (const char* policy : {"adaptive", "adaptive:evict", "adaptive:elastic", "smguard", "baymax",
                             "priority", "fifo"}) {
    SCOPED_TRACE(policy);
    events_.records.clear();
    ASSERT_NO_FATAL_FAILURE(Open(policy));
    const QueueId other = AddQueue(AppClass::kBestEffort, "other");
    std::vector<TicketId> steps;
    for (int i = 0; i < 3; ++i) {
      steps.push_back(SubmitGraph(train_, step_, false));
      steps.push_back(SubmitGraph(other, step_, false));
    }
    SlowestQuery(8, 1537 * kUs);
    for (const TicketId step : steps) FinishOk(step);
    EXPECT_EQ(MostGraphsBegun(), 1);
  }
}

TEST_F(SegmentsTest, ATaskThatEndsEarlyLetsTheNextOneOfItsGraphStart) {
  Open("adaptive");
  const QueueId other = AddQueue(AppClass::kBestEffort, "other");
  const TicketId first = SubmitGraph(train_, step_, false);
  Pass(kMs);
  const TicketId second = SubmitGraph(other, step_, false);
  Pass(kMs);
  ASSERT_TRUE(scheduler_->Cancel(first).ok());
  const CompletionRecord record = FinishOk(second);
  EXPECT_EQ(record.hold_reason, Reason::kHoldWindow);
  EXPECT_EQ(Finish(first).verdict, Verdict::kCancelled);
}

TEST_F(SegmentsTest, ATaskThatIsCancelledBeforeItStartsLetsNoOtherOfItsGraphStart) {
  Open("adaptive:evict");
  const QueueId other = AddQueue(AppClass::kBestEffort, "other");
  const TicketId first = SubmitGraph(train_, step_, false);
  Pass(kMs);
  const TicketId cancelled = SubmitGraph(other, step_, false);
  const TicketId third = SubmitGraph(other, step_, false);
  Pass(kMs);
  ASSERT_TRUE(scheduler_->Cancel(cancelled).ok());
  Finish(SubmitGraph(service_, query_, true));  // evicts the first
  EXPECT_EQ(Finish(cancelled).verdict, Verdict::kCancelled);
  FinishOk(third);
  FinishOk(first);
  EXPECT_EQ(MostGraphsBegun(), 1);
}

TEST_F(SegmentsTest, AGraphInSegmentsBelongsToTheClassThatFirstSubmitsIt) {
  Open("adaptive");
  TaskSpec spec;
  spec.queue = service_;
  spec.kernel = step_;
  spec.work.kind = TaskKind::kGraph;
  Finish(SubmitGraph(train_, step_, false));
  const auto refused = scheduler_->SubmitLc(spec);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.status().message(),
            "Graph 'step' runs in segments for best-effort apps, and a task of a latency-critical "
            "app would use the same buffers; register a second capture for it.");
  KernelDesc inference = Graph("inference", kNodeNs);
  inference.simulation.nodes[0].repeat = kNodes;
  spec.queue = train_;
  spec.kernel = *scheduler_->RegisterKernel(inference);
  Finish(SubmitGraph(service_, spec.kernel, true));
  EXPECT_EQ(scheduler_->SubmitBe(spec).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SegmentsTest, ASubmitThatFailsClaimsNoGraph) {
  Open("adaptive");
  AppOptions options{.name = "full", .app_class = AppClass::kBestEffort};
  options.tasks_max = 1;
  TaskSpec spec;
  spec.queue = AddQueue(options);
  spec.kernel = step_;
  spec.work.kind = TaskKind::kGraph;
  KernelDesc other = Graph("other", kNodeNs);
  other.simulation.nodes[0].repeat = kNodes;
  const TicketId held = SubmitGraph(spec.queue, *scheduler_->RegisterKernel(other), false);
  EXPECT_EQ(scheduler_->SubmitBe(spec).status().code(), absl::StatusCode::kResourceExhausted);
  FinishOk(SubmitGraph(service_, step_, true));
  Finish(held);
  // A claim of an earlier task stays.
  EXPECT_EQ(scheduler_->SubmitBe(spec).status().code(), absl::StatusCode::kFailedPrecondition);
}

// No launch runs a part of a graph: with this bound it ran once for each of its segments.
TEST_F(SegmentsTest, AGraphRunsOnceWhateverThePlanBounds) {
  Open("fifo");
  // Without a partner a fused launch becomes one of the task alone.
  for (const Form form : {Form::kGraph, Form::kSegments, Form::kFused}) {
    for (const LaneClass lane_class : {LaneClass::kPlain, LaneClass::kBe}) {
      ASSERT_TRUE(scheduler_->SetPolicy(LaunchAll(form, lane_class, 1)).ok());
      const CompletionRecord record = FinishOk(SubmitGraph(train_, step_, false));
      EXPECT_EQ(record.launches, 1);
      EXPECT_EQ(record.block_tasks, Segments());
      EXPECT_LT(record.measured_ns, kStepNs * 103 / 100) << "more than one execution";
    }
  }
}

// The limit falls twice while a graph runs that began without one. Until it has ended, what queries
// wait for it says nothing of its own segments.
TEST_F(SegmentsTest, AGraphOfAnEarlierLimitTeachesNothingWhateverTheLastLimitWas) {
  int64_t limit_ns = kNever;
  Open(std::make_unique<PlanWith>([&limit_ns](const Snapshot& snapshot, Plan& plan) {
    plan.longest_segment_ns = limit_ns;
    for (LcRoute& route : plan.routes) {
      route.fast_path = false;
      route.evict_overlapping = true;
    }
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      const bool lc = head.app_class == AppClass::kLatencyCritical;
      launch.form = lc ? Form::kGraph : Form::kSegments;
      launch.lane_class = lc ? LaneClass::kPlain : LaneClass::kBe;
    }
  }));
  SubmitGraph(train_, step_, false);
  Pass(kMs);
  for (const int64_t next_ns : {2 * kMs, int64_t{0}}) {
    limit_ns = next_ns;
    SubmitGraph(train_, step_, false);  // so that there is another plan
    Pass(kMs);
  }
  Pass(4 * kMs);
  const std::vector<TicketId> queries = {SubmitGraph(service_, query_, true),
                                         SubmitGraph(service_, query_, true)};
  for (const TicketId query : queries) FinishOk(query);
  EXPECT_TRUE(delays_.empty()) << delays_[0] << " ns";
  scheduler_ = nullptr;  // its policy reads the limit
}

TEST_F(SegmentsTest, AFormThatNoGraphHasIsDroppedAndRunsNothing) {
  Open("fifo");
  for (const Form form : {Form::kSlice, Form::kWorkers, Form::kOriginal}) {
    for (const LaneClass lane_class : {LaneClass::kPlain, LaneClass::kBe}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(form), " on ", static_cast<int>(lane_class)));
      const int64_t dropped = scheduler_->Stats().plan_entries_dropped;
      ASSERT_TRUE(scheduler_->SetPolicy(LaunchAll(form, lane_class, 1)).ok());
      const TicketId step = SubmitGraph(train_, step_, false);
      Pass(2 * kStepNs);
      EXPECT_GT(scheduler_->Stats().plan_entries_dropped, dropped);
      EXPECT_FALSE(*scheduler_->IsComplete(step));
      ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("fifo")).ok());
      const CompletionRecord record = FinishOk(step);
      EXPECT_EQ(record.hold_reason, Reason::kHoldPlan);
      EXPECT_EQ(record.launches, 1);
    }
  }
}

// These put LC queues, which stay on their lanes, and BE work on plain lanes: a graph's rest there
// made the device refuse the query behind it.
TEST_F(SegmentsTest, TheRestOfAGraphFailsNoQueryUnderAnyLaterPolicy) {
  for (const char* policy :
       {"fifo", "bare", "baymax", "priority", "own: plain", "own: lc", "own: be"}) {
    SCOPED_TRACE(policy);
    ASSERT_NO_FATAL_FAILURE(Open("adaptive:evict"));
    KernelDesc desc = Graph("small", kQueryNs);  // the graph's segments end beside it
    desc.simulation.nodes[0].blocks = 8;
    const KernelId small = *scheduler_->RegisterKernel(desc);
    std::vector<QueueId> services;  // on each plain lane one
    for (const char* name : {"a", "b", "c", "d"}) {
      services.push_back(AddQueue(AppClass::kLatencyCritical, name));
    }
    const TicketId step = SubmitGraph(train_, step_, false);
    Pass(3 * kMs);
    std::vector<TicketId> queries = {SubmitGraph(service_, query_, true)};  // evicts the graph
    Pass(20 * kUs);
    const LaneClass lane_class = policy == std::string("own: lc")   ? LaneClass::kLc
                                 : policy == std::string("own: be") ? LaneClass::kBe
                                                                    : LaneClass::kPlain;
    ASSERT_TRUE(scheduler_
                    ->SetPolicy(policy[0] == 'o' ? LaunchAll(Form::kGraph, lane_class, 0)
                                                 : *MakePolicy(policy))
                    .ok());
    Pass(kUs);  // publishes the routes
    for (int i = 0; i < 40; ++i) {
      for (const QueueId queue : services) queries.push_back(SubmitGraph(queue, small, true));
      Pass(kQueryNs * 3 / 4);  // one query at least is in flight
    }
    for (const TicketId query : queries) FinishOk(query);
    const CompletionRecord record = FinishOk(step);
    EXPECT_EQ(record.block_tasks, Segments());
    EXPECT_EQ(SegmentsDone(step), Segments());
    EXPECT_GT(record.launches, 1);
    events_.records.clear();
  }
}

// A quota evicts no graph: it cannot keep some of its workers, so that the next launch would exceed
// the quota too. A reservation evicts it, as a whole, once a query.
TEST_F(SegmentsTest, SmguardEvictsAGraphForAReservationAndNotForAQuota) {
  const struct {
    const char* reserved_by;
    int32_t capsms;
    int32_t evictions;
  } cases[] = {{"train", 20, 0}, {"service", 32, 3}, {"nobody", 0, 0}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.reserved_by);
    ASSERT_NO_FATAL_FAILURE(Open("smguard"));
    if (one.capsms > 0) {
      const AppId app = one.evictions > 0 ? service_app_ : train_app_;
      ASSERT_TRUE(scheduler_->ReserveCapSm({.app = app, .capsms = one.capsms}).ok());
    }
    const TicketId step = SubmitGraph(train_, step_, false);
    Pass(kMs);
    SlowestQuery(3, kMs);
    const CompletionRecord record = FinishOk(step);
    EXPECT_EQ(record.evictions, one.evictions);
    EXPECT_EQ(record.launches, one.evictions + 1);
    EXPECT_EQ(record.block_tasks, Segments());
    scheduler_ = nullptr;
  }
}

// The policies that hold BE work by its duration: a step of 10 ms fits no headroom of 5 ms.
class DurationPolicies : public SegmentsTest, public testing::WithParamInterface<const char*> {};

TEST_P(DurationPolicies, AStepRunsUnderLoadAndQueriesKeepTheirTarget) {
  target_ns_ = 5 * kMs;
  Open(GetParam());
  Finish(SubmitGraph(service_, query_, true));  // its duration is known from now on
  const TicketId step = SubmitGraph(train_, step_, false);
  EXPECT_LE(SlowestQuery(20), target_ns_);
  EXPECT_TRUE(*scheduler_->IsComplete(step)) << "31 ms of the device, 10 of them queries'";
  const CompletionRecord record = FinishOk(step);
  EXPECT_EQ(record.form, Form::kSegments);
  EXPECT_EQ(SegmentsDone(step), Segments());
}

// While a query runs T_q is beyond the gate of 300 us, so that no segment may begin.
TEST_P(DurationPolicies, ATightTargetEvictsTheStepForEachQuery) {
  target_ns_ = kQueryNs + 300 * kUs;
  Open(GetParam());
  Finish(SubmitGraph(service_, query_, true));
  const TicketId step = SubmitGraph(train_, step_, false);
  EXPECT_LE(SlowestQuery(6), target_ns_);
  const CompletionRecord record = FinishOk(step);
  EXPECT_EQ(record.evictions, 6);
  EXPECT_EQ(record.launches, 7);
  EXPECT_EQ(SegmentsDone(step), Segments());
}

INSTANTIATE_TEST_SUITE_P(All, DurationPolicies,
                         testing::Values("baymax", "baymax:nc", "baymax:np", "tacker",
                                         "tacker:direct"));

// A graph of measured nodes, and no LC app.
class AloneTest : public SegmentsTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open(policy_, 1.05));
    ASSERT_TRUE(scheduler_->ReleaseQueue(service_).ok());
    ASSERT_TRUE(scheduler_->ReleaseApp(service_app_).ok());
    KernelDesc step = Graph("measured", kNodeNs);
    step.simulation.nodes[0].repeat = kNodes;
    step.graph()->measure_nodes = true;
    measured_ = *scheduler_->RegisterKernel(step);
  }
  void AddService(int64_t target_ns = 0) {
    AppOptions service;
    service.name = "later";
    service.app_class = AppClass::kLatencyCritical;
    service.promise.p99_bound = target_ns > 0 ? 0 : 1.05;
    service.promise.target_ns = target_ns;
    service_app_ = *scheduler_->CreateApp(service);
    service_ = *scheduler_->CreateQueue(service_app_);
  }
  // ns a step.
  double TimeSteps(KernelId step, int count) {
    const TimeNs begin_ns = scheduler_->NowNs();
    for (const TicketId ticket : SubmitSteps(step, count)) {
      EXPECT_EQ(FinishOk(ticket).block_tasks, Segments());
    }
    return static_cast<double>(scheduler_->NowNs() - begin_ns) / count;
  }

  std::string policy_ = "adaptive";
  KernelId measured_;
};

// And then beside an LC app that has the whole device while it is active.
class NextToQueriesTest : public AloneTest {
 protected:
  NextToQueriesTest() { policy_ = "adaptive:evict"; }
};

// Its own segments cost 1.6 us each.
TEST_F(NextToQueriesTest, AGraphHasLongSegmentsUntilAnLcAppIsThereAndAgainOnceItIsGone) {
  constexpr double kCuts = 100 * 1'600;
  const double alone_ns = TimeSteps(measured_, 20);
  EXPECT_LT(alone_ns, kStepNs * 1.005);
  AddService();
  // Before the app counts as silent.
  EXPECT_NEAR(TimeSteps(measured_, 8), alone_ns + kCuts, 0.1 * kCuts);
  ASSERT_TRUE(scheduler_->ReleaseQueue(service_).ok());
  ASSERT_TRUE(scheduler_->ReleaseApp(service_app_).ok());
  EXPECT_LT(TimeSteps(measured_, 20), kStepNs * 1.005);
}

// What its own segments take must be learned before longer ones hide it.
TEST_F(AloneTest, AGraphThatNobodyMeasuredRunsInItsOwnSegmentsFirst) {
  EXPECT_GT(TimeSteps(step_, 4), kStepNs * 1.01);
  EXPECT_FALSE(latencies_.empty());
  TimeSteps(step_, 8);
  const size_t seen = latencies_.size();
  EXPECT_LT(TimeSteps(step_, 10), kStepNs * 1.005);
  EXPECT_EQ(latencies_.size(), seen);
}

// The first query may wait for two of the longest segments, because a step takes longer than these.
TEST_F(AloneTest, AnLcAppThatComesWaitsForTwoOfTheLongestSegmentsAtMost) {
  constexpr int64_t kTwoNs = 2 * 2 * kMs;
  const std::vector<TicketId> steps = SubmitSteps(measured_, 100);
  Pass(22 * kMs);
  AddService();
  const TicketId query = SubmitGraph(service_, query_, true);
  Pass(kTwoNs);
  EXPECT_LT(FinishOk(query).complete_ns, 22 * kMs + kTwoNs + kQueryNs + 100 * kUs);
  EXPECT_EQ(FinishOk(steps[2]).evictions, 1) << "it has left before its end";
  EXPECT_LT(SlowestQuery(30), kQueryNs + 2 * kSegmentNs + 100 * kUs);
}

// An app that has never had a query holds no BE work (IsSilent), and makes no segment short.
TEST_F(NextToQueriesTest, BesideAnAppWithoutQueriesAGraphHasLongSegments) {
  const double alone_ns = TimeSteps(measured_, 10);
  AddService();
  Pass(200 * kMs);  // more than kTailSilentNs
  EXPECT_LT(TimeSteps(measured_, 10), alone_ns * 1.002);
}

// What queries wait for longer segments says nothing of the graph's own. Queries that come so
// rarely are no load.
TEST_F(NextToQueriesTest, OnlyTheGraphsOwnSegmentsTeachWhatQueriesWait) {
  for (const int64_t target_ns : {int64_t{0}, 100 * kMs}) {
    AddService(target_ns);
    delays_.clear();
    for (int round = 0; round < 20; ++round) {
      const std::vector<TicketId> steps = SubmitSteps(measured_, 400);
      SlowestQuery(20, 200'037 * kUs);
      for (const TicketId step : steps) FinishOk(step);
    }
    EXPECT_EQ(delays_.empty(), target_ns > 0);
    ASSERT_TRUE(scheduler_->ReleaseQueue(service_).ok());
    ASSERT_TRUE(scheduler_->ReleaseApp(service_app_).ok());
  }
}

}  // namespace
}  // namespace gpushare::core
