// The snapshot that a policy gets, kept by a policy that holds all BE work.

#include "src/core/flow/plan.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/core/forwarding_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1000 * 1000;

struct Seen {
  std::vector<AppClass> classes;
  std::vector<uint64_t> sequences;
  std::vector<int64_t> eviction_ns;
  std::vector<bool> eviction_known;
  std::vector<int64_t> budget_ns;  // of the LC apps
  std::vector<double> fair_weights;
  std::vector<int32_t> queries;  // the LC app of each
  std::vector<int64_t> query_solo_ns;
  int64_t lag_ns = 0;  // the longest of the LC apps
  bool queries_left_out = false;
  bool hold_lc = false;
  ArrangementInForce in_force;
  ArrangementInForce states;  // the plan's
};

// Launches LC heads unless hold_lc, and no BE head.
class HoldingPolicy final : public Policy {
 public:
  explicit HoldingPolicy(Seen& seen) : seen_(seen) {}
  absl::string_view name() const override { return "holding"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    seen_.classes.clear();
    seen_.sequences.clear();
    seen_.eviction_ns.clear();
    seen_.eviction_known.clear();
    seen_.budget_ns.clear();
    seen_.fair_weights.clear();
    seen_.lag_ns = 0;
    for (const LcAppView& app : snapshot.lc_apps) {
      seen_.lag_ns = std::max(seen_.lag_ns, app.lag_ns);
      seen_.budget_ns.push_back(app.blocking_budget_ns);
    }
    for (const BeAppView& app : snapshot.be_apps) seen_.fair_weights.push_back(app.fair_weight);
    seen_.queries.clear();
    seen_.query_solo_ns.clear();
    TimeNs before_ns = 0;
    for (const QueryView& query : snapshot.queries) {
      EXPECT_GE(query.arrival_ns, before_ns) << "the queries are in order of arrival";
      before_ns = query.arrival_ns;
      seen_.queries.push_back(query.lc_app);
      seen_.query_solo_ns.push_back(query.solo_ns);
    }
    seen_.queries_left_out = snapshot.queries_left_out;
    seen_.in_force = snapshot.in_force;
    plan.arrangement = seen_.states;
    for (LcRoute& route : plan.routes) route.fast_path = false;
    for (const HeadView& head : snapshot.heads) {
      seen_.classes.push_back(head.app_class);
      seen_.sequences.push_back(head.sequence);
      seen_.eviction_ns.push_back(head.eviction_ns);
      seen_.eviction_known.push_back(head.eviction_known);
      if (head.app_class != AppClass::kLatencyCritical || seen_.hold_lc) continue;
      PlannedLaunch launch;
      launch.task = head.task;
      launch.lane_class = LaneClass::kLc;
      plan.launches.TryAdd(launch);
    }
  }

 private:
  Seen& seen_;
};

class DeviceWithoutEviction final : public ForwardingDevice {
 public:
  DeviceWithoutEviction() : ForwardingDevice(null::MakeNullDevice()) {
    capabilities_ = inner().capabilities();
    capabilities_.eviction = false;
  }
  const DeviceCapabilities& capabilities() const override { return capabilities_; }

 private:
  DeviceCapabilities capabilities_;
};

// Cuts each graph, and knows nothing of its nodes, as on a GPU.
class CuttingDevice final : public ForwardingDevice {
 public:
  CuttingDevice() : ForwardingDevice(null::MakeNullDevice()) {}
  GraphCut CutOf(const KernelDesc& /*graph*/) const override { return {.segments = 90}; }
};

// Each launch took 1 us; those of the null device take no time, which teaches nothing.
class TimedDevice final : public ForwardingDevice {
 public:
  TimedDevice() : ForwardingDevice(null::MakeNullDevice()) {}
  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    const size_t count = inner().PollCompletions(out);
    for (DeviceCompletion& completion : out.first(count)) {
      completion.start_ns = completion.end_ns - 1000;
    }
    return count;
  }
};

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(null::MakeNullDevice()); }
  void Start(std::unique_ptr<Device> device) {
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    scheduler_ = Scheduler::Create(SchedulerOptions(), std::move(device), std::move(model),
                                   std::make_unique<HoldingPolicy>(seen_))
                     .value();
    KernelDesc kernel;
    kernel.name = "work";
    kernel.evictable = true;
    kernel_ = *scheduler_->RegisterKernel(kernel);
    lc_app_ = MakeApp(AppClass::kLatencyCritical, "server");
    be_app_ = MakeApp(AppClass::kBestEffort, "train");
  }

  AppId MakeApp(AppClass app_class, const char* name) {
    return *scheduler_->CreateApp({.name = name, .app_class = app_class});
  }
  // One task on each of so many new queues.
  std::vector<TicketId> SubmitHeads(AppId app, int heads) {
    std::vector<TicketId> tickets;
    for (int i = 0; i < heads; ++i) {
      TaskSpec spec;
      spec.queue = *scheduler_->CreateQueue(app);
      spec.kernel = kernel_;
      spec.work.block_tasks = 64;
      auto ticket =
          app.value == lc_app_.value ? scheduler_->SubmitLc(spec) : scheduler_->SubmitBe(spec);
      EXPECT_TRUE(ticket.ok()) << ticket.status();
      tickets.push_back(*ticket);
    }
    return tickets;
  }

  // A task of a kernel that takes 1 us, of an LC app of two kernels whose queries take seconds in
  // the mean.
  TaskSpec ShortTask() {
    Start(std::make_unique<TimedDevice>());
    AppOptions options;
    options.name = "engine";
    options.app_class = AppClass::kLatencyCritical;
    options.solo_ns = 60'000 * kMs;
    TaskSpec spec;
    spec.queue = *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
    spec.kernel = kernel_;
    spec.work.block_tasks = 64;
    Run(spec);
    KernelDesc decode;
    decode.name = "decode";
    spec.kernel = *scheduler_->RegisterKernel(decode);
    for (int i = 0; i < 10; ++i) Run(spec);
    return spec;
  }
  void Run(const TaskSpec& spec) {
    const TicketId ticket = *scheduler_->SubmitLc(spec);
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 500 * kMs).ok());
  }

  Seen seen_;
  std::unique_ptr<Scheduler> scheduler_;
  KernelId kernel_;
  AppId lc_app_, be_app_;
};

// A policy may hold every head of an app for ever: they hide no head of another app.
TEST_F(PlanTest, AllQueuesOfOneAppHideNoHeadOfAnother) {
  constexpr int kRest = kMaxQueues - 2;
  const AppId other = MakeApp(AppClass::kBestEffort, "other");
  SubmitHeads(be_app_, kRest);
  scheduler_->Tick();
  ASSERT_EQ(seen_.classes.size(), static_cast<size_t>(kRest));
  SubmitHeads(other, 1);
  scheduler_->Tick();
  ASSERT_EQ(seen_.classes.size(), static_cast<size_t>(kRest) + 1);
  const TicketId query = SubmitHeads(lc_app_, 1).front();
  EXPECT_TRUE(scheduler_->Wait(query, scheduler_->NowNs() + 500 * kMs).ok());
  EXPECT_EQ(scheduler_->Stats().fast_path_launches, 0) << "the plan launched it";
}

// An app with more active queries than a plan sees hides no query of another app.
TEST_F(PlanTest, QueriesOfOneAppHideNoneOfAnother) {
  seen_.hold_lc = true;
  TaskSpec spec;
  spec.queue = *scheduler_->CreateQueue(lc_app_);
  spec.kernel = kernel_;
  spec.work.block_tasks = 64;
  for (int i = 1; i <= kMaxActiveQueriesPerApp; ++i) {
    spec.arrival_ns = i;
    ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  }
  scheduler_->Tick();
  EXPECT_EQ(seen_.queries.size(), size_t{kMaxActiveQueriesPerApp});
  EXPECT_FALSE(seen_.queries_left_out);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  spec.queue = *scheduler_->CreateQueue(MakeApp(AppClass::kLatencyCritical, "other"));
  spec.arrival_ns = 0;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  for (int i = 0; i < 3; ++i) scheduler_->Tick();  // the ring has more than one Tick takes
  EXPECT_EQ(std::count(seen_.queries.begin(), seen_.queries.end(), 0), kMaxActiveQueriesPerApp);
  EXPECT_EQ(std::count(seen_.queries.begin(), seen_.queries.end(), 1), 2);
  EXPECT_TRUE(seen_.queries_left_out);
}

// A decode step is no prefill. Of a query of several tasks more may come.
TEST_F(PlanTest, AQueryOfOneShortTaskIsNotAsLongAsTheAppsMean) {
  TaskSpec spec = ShortTask();
  seen_.hold_lc = true;
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  spec.query = *scheduler_->BeginQuery(spec.queue, 0);
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  scheduler_->Tick();
  ASSERT_EQ(seen_.query_solo_ns.size(), 2u);
  EXPECT_LT(seen_.query_solo_ns[0], 100 * kMs);
  EXPECT_GT(seen_.query_solo_ns[1], 1000 * kMs);
}

TEST_F(PlanTest, AShortTaskThatWaitsIsBehindLongBeforeTheAppsMean) {
  const TaskSpec spec = ShortTask();
  seen_.hold_lc = true;
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  scheduler_->Tick();
  const TimeNs until_ns = scheduler_->NowNs() + 20 * kMs;
  while (scheduler_->NowNs() < until_ns) scheduler_->Tick();
  SubmitHeads(be_app_, 1);  // so that there is another plan
  scheduler_->Tick();
  EXPECT_GT(seen_.lag_ns, 5 * kMs);
}

TEST_F(PlanTest, LcHeadsComeFirstAndEachClassInOrderOfSubmission) {
  seen_.hold_lc = true;
  SubmitHeads(be_app_, 30);
  SubmitHeads(lc_app_, 3);
  SubmitHeads(be_app_, 120);
  SubmitHeads(lc_app_, 2);
  scheduler_->Tick();
  ASSERT_EQ(seen_.classes.size(), size_t{30 + 3 + 120 + 2});
  for (size_t i = 0; i < seen_.classes.size(); ++i) {
    EXPECT_EQ(seen_.classes[i], i < 5 ? AppClass::kLatencyCritical : AppClass::kBestEffort) << i;
    if (i > 0 && i != 5) {
      EXPECT_LT(seen_.sequences[i - 1], seen_.sequences[i]) << i;
    }
  }
  // 30 BE heads came before the first three LC ones, the rest after them.
  EXPECT_EQ(seen_.sequences[5 + 29] + 4, seen_.sequences[5 + 30]);
}

TEST_F(PlanTest, ThePlansArrangementArrivesInTheNextSnapshot) {
  const ArrangementInForce stated = {
      .split = 0, .trial_kernel = 0, .segments = SegmentsRun::kOnSplit};
  seen_.states = stated;
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  EXPECT_EQ(seen_.in_force, ArrangementInForce());
  seen_.states = {};
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  EXPECT_EQ(seen_.in_force, stated);
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  EXPECT_EQ(seen_.in_force, ArrangementInForce()) << "the second plan stated nothing";
}

TEST_F(PlanTest, HeadsThatCameInTheReversedOrderAreInOrderOfSubmissionToo) {
  constexpr int kQueues = 100;
  seen_.hold_lc = true;
  std::vector<TaskSpec> specs(kQueues);
  for (TaskSpec& spec : specs) {
    spec.queue = *scheduler_->CreateQueue(lc_app_);
    spec.kernel = kernel_;
    spec.work.block_tasks = 64;
    ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  }
  for (int i = kQueues - 1; i >= 0; --i) {
    ASSERT_TRUE(scheduler_->SubmitLc(specs[static_cast<size_t>(i)]).ok());
  }
  scheduler_->Tick();
  const uint64_t first = seen_.sequences.front();
  seen_.hold_lc = false;
  SubmitHeads(be_app_, 1);  // so that there is another plan
  scheduler_->Tick();       // launches the first task of each queue
  seen_.hold_lc = true;
  scheduler_->Tick();
  ASSERT_EQ(seen_.sequences.size(), static_cast<size_t>(kQueues) + 1);
  for (size_t i = 0; i < static_cast<size_t>(kQueues); ++i) {
    EXPECT_EQ(seen_.sequences[i], first + kQueues + i) << i;
  }
}

// What one query leaves of a target is not what a queue leaves.
TEST_F(PlanTest, ATargetLeavesWhatIsBeyondTheStatedP99) {
  AppOptions options;
  options.name = "service";
  options.app_class = AppClass::kLatencyCritical;
  options.promise.target_ns = 10 * kMs;
  options.solo_ns = kMs;
  for (const int64_t p99_alone_ns : {4 * kMs, 12 * kMs}) {
    options.promise.p99_alone_ns = p99_alone_ns;
    ASSERT_TRUE(scheduler_->CreateApp(options).ok());
  }
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  ASSERT_EQ(seen_.budget_ns.size(), 3u);
  EXPECT_EQ(seen_.budget_ns[1], 6 * kMs);
  EXPECT_NEAR(static_cast<double>(seen_.budget_ns[2]), 0.05 * 12 * kMs, 1) << "the target is lost";
}

// Predictions err, and a plan that used all of a bound would break it in every second window.
TEST_F(PlanTest, ABoundLeavesTheShareOfItsSlackThatIsForWaits) {
  AppOptions options;
  options.name = "service";
  options.app_class = AppClass::kLatencyCritical;
  options.promise.p99_bound = 1.05;
  options.promise.p99_alone_ns = 4 * kMs;
  ASSERT_TRUE(scheduler_->CreateApp(options).ok());
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  ASSERT_EQ(seen_.budget_ns.size(), 2u);
  EXPECT_NEAR(static_cast<double>(seen_.budget_ns[1]), 0.9 * 0.05 * 4 * kMs, 1);
}

// 132 CapSMs, of which 100 are reserved: a quota of 12 leaves 20.
TEST_F(PlanTest, WeightsShareWhatReservationsAndQuotasLeave) {
  const AppId other = MakeApp(AppClass::kBestEffort, "other");
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  EXPECT_EQ(seen_.fair_weights, (std::vector<double>{1, 1}));
  ASSERT_TRUE(scheduler_->ReserveCapSm({lc_app_, 100, false}).ok());
  ASSERT_TRUE(scheduler_->ReserveCapSm({other, 12, false}).ok());
  scheduler_->Tick();
  EXPECT_EQ(seen_.fair_weights, (std::vector<double>{1, 0.6}));
}

// A policy would otherwise count on a time in which nothing leaves.
TEST_F(PlanTest, NothingHasAnEvictionTimeOnADeviceThatEvictsNothing) {
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  ASSERT_EQ(seen_.eviction_ns.size(), 1u);
  EXPECT_LT(seen_.eviction_ns[0], kMs);
  Start(std::make_unique<DeviceWithoutEviction>());
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  ASSERT_EQ(seen_.eviction_ns.size(), 1u);
  EXPECT_EQ(seen_.eviction_ns[0], kNever);
}

// Two segments are on the device when the eviction comes.
TEST_F(PlanTest, AGraphThatHasNotRunHasTheEvictionTimeOfItsSegments) {
  Start(std::make_unique<CuttingDevice>());
  KernelDesc graph;
  graph.name = "step";
  graph.code = GraphCode{.segment_ns = 200 * 1000};
  TaskSpec spec;
  spec.queue = *scheduler_->CreateQueue(be_app_);
  spec.kernel = *scheduler_->RegisterKernel(graph);
  spec.work.kind = TaskKind::kGraph;
  ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  scheduler_->Tick();
  ASSERT_EQ(seen_.eviction_ns.size(), 1u);
  EXPECT_GE(seen_.eviction_ns[0], 300 * 1000) << "one and a half on average";
  EXPECT_LE(seen_.eviction_ns[0], 420 * 1000);
  EXPECT_TRUE(seen_.eviction_known[0]) << "the segments have the length that was asked for";
}

// If a guess held an unknown kernel, it would never be measured.
TEST_F(PlanTest, AnUnknownKernelCountsAsLeavingAtOnceAndAsUnknown) {
  KernelDesc described;
  described.name = "described";
  described.evictable = true;
  described.simulation.present = true;
  described.simulation.block_task_ns = 100 * 1000;
  SubmitHeads(be_app_, 1);
  kernel_ = *scheduler_->RegisterKernel(described);
  SubmitHeads(be_app_, 1);
  scheduler_->Tick();
  EXPECT_EQ(seen_.eviction_known, (std::vector<bool>{false, true}));
  EXPECT_LT(seen_.eviction_ns[0], seen_.eviction_ns[1]);
}

}  // namespace
}  // namespace gpushare::core
