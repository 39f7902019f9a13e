// Seeded simulations of the whole flow with faults: whatever goes wrong, every accepted task
// completes exactly once, every block task runs exactly once, the CapSM ledger returns to zero, no
// reservation is oversubscribed and no eviction is lost.
//
// GPUSHARE_FAULT_SEEDS sets the number of seeds, GPUSHARE_FAULT_SEED replays one.

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"
#include "src/core/base/random.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr int kDefaultSeeds = 500;
#else
constexpr int kDefaultSeeds = 10000;
#endif

struct Submitted {
  TicketId ticket;
  int64_t blocks = 0;
  int callbacks = 0;
  CompletionRecord record;
};

// Another policy, with the graphs of LC apps cut at kernel nodes by every other plan.
class WithCuts final : public Policy {
 public:
  explicit WithCuts(std::unique_ptr<Policy> inner) : inner_(std::move(inner)) {}
  absl::string_view name() const override { return inner_->name(); }
  PolicyProperties properties() const override { return inner_->properties(); }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    inner_->MakePlan(snapshot, plan);
    cuts_ = !cuts_;
    for (LcRoute& route : plan.routes) route.cuts_graphs = cuts_;
  }

 private:
  std::unique_ptr<Policy> inner_;
  bool cuts_ = false;
};

class World {
 public:
  explicit World(uint64_t seed, bool cuts = false) : cuts_(cuts), random_(seed), log_(1 << 16) {
    Build(seed);
  }

  void Run();
  uint64_t digest() const { return DecisionDigest(log_.records()); }
  bool ok() const { return scheduler_ != nullptr; }
  int64_t cut_queries() const { return cut_queries_; }

 private:
  int64_t Draw(int64_t low, int64_t high) {  // inclusive
    return low + static_cast<int64_t>(random_.Uniform() * static_cast<double>(high - low + 1));
  }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  sim::FaultTrigger Sometimes(double share, double probability) {
    sim::FaultTrigger trigger;
    if (Chance(share)) trigger.probability = probability;
    return trigger;
  }
  void Build(uint64_t seed);
  void Step();
  void SubmitOne();
  void Check();

  struct Source {
    AppId app;
    QueueId queue;
    AppClass app_class;
  };

  const bool cuts_;  // LC apps submit a graph that is cut at kernel nodes
  int64_t cut_queries_ = 0;
  Random random_;
  EventLog log_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<KernelId> kernels_;
  KernelId graph_;
  KernelId steps_;  // a graph that BE runs in segments
  std::vector<Source> sources_;
  std::vector<std::unique_ptr<Submitted>> submitted_;
};

KernelDesc BeKernel(const char* name, int64_t block_ns, bool evictable, int64_t yield_ns) {
  KernelDesc kernel;
  kernel.name = name;
  kernel.evictable = evictable;
  kernel.resources.workers_per_sm_max = 8;
  kernel.yield_interval_ns = yield_ns;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = block_ns;
  kernel.simulation.demand.issue = 0.5;
  return kernel;
}

void World::Build(uint64_t seed) {
  sim::SimOptions options;
  options.seed = seed;
  options.tier = Chance(0.2) ? sim::Tier::kBlock : sim::Tier::kKernel;
  sim::FaultPlan& faults = options.faults;
  faults.launch_error = Sometimes(0.2, 0.02);
  faults.launch_failure = Sometimes(0.2, 0.02);
  faults.hang = Sometimes(0.15, 0.01);
  faults.device_lost = Sometimes(0.05, 0.01);
  faults.slow_copy = Sometimes(0.3, 0.2);
  faults.dropped_completion = Sometimes(0.1, 0.01);
  faults.duplicated_completion = Sometimes(0.2, 0.05);
  faults.blocked_eviction = Sometimes(0.2, 0.1);
  faults.misprediction = Sometimes(0.3, 0.1);
  faults.lane_out_of_memory = Sometimes(0.02, 0.02);
  if (Chance(0.1)) {
    faults.clock_jump_at_ns = Draw(0, 5 * kMs);
    faults.clock_jump_ns = Draw(0, 50 * kMs);
  }
  auto device = sim::MakeSimDevice(options).value();
  auto model = models::MakeOnlineModel(options.profile);
  const std::vector<std::string> policies = {
      "fifo",           "priority",           "baymax",
      "smguard",        "smguard:packed",     "adaptive",
      "adaptive:evict", "adaptive:partition", "adaptive:elastic"};
  auto policy = MakePolicy(policies[static_cast<size_t>(Draw(0, 8))]).value();
  if (cuts_) policy = std::make_unique<WithCuts>(std::move(policy));
  SchedulerOptions scheduler_options;
  scheduler_options.hang_floor_ns = 20 * kMs;
  scheduler_options.splits_max = Chance(0.8) ? static_cast<int32_t>(Draw(1, kMaxSplits)) : 0;
  scheduler_options.events = &log_;
  auto scheduler =
      Scheduler::Create(scheduler_options, std::move(device), std::move(model), std::move(policy));
  if (!scheduler.ok()) return;  // out of memory at start: nothing was accepted
  scheduler_ = *std::move(scheduler);
  for (const KernelDesc& kernel :
       {BeKernel("short", 20 * kUs, true, 0), BeKernel("long", 900 * kUs, true, 0),
        BeKernel("yields", 900 * kUs, true, 100 * kUs), BeKernel("fixed", 50 * kUs, false, 0)}) {
    kernels_.push_back(*scheduler_->RegisterKernel(kernel));
  }
  KernelDesc graph;
  graph.name = "query";
  graph.code = GraphCode();
  graph.simulation.present = true;
  graph.simulation.nodes.push_back({20 * kUs, 132, 10, true, {}});
  if (cuts_) {
    FusedKernelDesc pair;
    pair.name = "pair";
    pair.tensor_part = *scheduler_->RegisterKernel(BeKernel("gemm", 20 * kUs, false, 0));
    pair.cuda_part = kernels_[0];
    pair.opportune_load_ratio = 0.8;
    pair.opportune_duration_ratio = 1.1;
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(pair).ok());
    KernelDesc network = graph;
    network.name = "network";
    network.code = GraphCode{.segment_ns = -1, .measure_nodes = true};
    GraphNode node = {.duration_ns = 100 * kUs, .blocks = 5 * 8 * 132, .demand = {}};
    for (const char* kernel : {"gemm", "", "gemm"}) {
      node.kernel = kernel;
      network.simulation.nodes.push_back(node);
    }
    graph_ = *scheduler_->RegisterKernel(network);
  } else {
    graph_ = *scheduler_->RegisterKernel(graph);
  }
  KernelDesc steps = graph;
  steps.name = "steps";
  steps.simulation.nodes.push_back({30 * kUs, 66, 60, true, {}});
  steps_ = *scheduler_->RegisterKernel(steps);
  const int64_t lc_apps = Draw(1, 2);
  const int64_t apps = lc_apps + Draw(1, 3);
  for (int64_t i = 0; i < apps; ++i) {
    AppOptions app;
    app.name = "app" + std::to_string(i);
    app.app_class = i < lc_apps ? AppClass::kLatencyCritical : AppClass::kBestEffort;
    app.tasks_max = static_cast<int32_t>(Draw(2, 64));
    if (i < lc_apps) {
      if (Chance(0.5)) app.promise.target_ns = Draw(200 * kUs, 5 * kMs);
      if (Chance(0.5)) app.promise.p99_bound = 1.0 + random_.Uniform();
      app.drop_late = app.promise.target_ns > 0 && Chance(0.3);
    }
    const AppId id = *scheduler_->CreateApp(app);
    for (int64_t q = Draw(1, 2); q > 0; --q) {
      sources_.push_back({id, *scheduler_->CreateQueue(id), app.app_class});
    }
  }
}

void World::SubmitOne() {
  const Source& source =
      sources_[static_cast<size_t>(Draw(0, static_cast<int64_t>(sources_.size()) - 1))];
  TaskSpec spec;
  spec.queue = source.queue;
  auto entry = std::make_unique<Submitted>();
  const double pick = random_.Uniform();
  if (source.app_class == AppClass::kLatencyCritical && pick < 0.6) {
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = graph_;
    entry->blocks = 1;
  } else if (source.app_class == AppClass::kBestEffort && pick < 0.25) {
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = steps_;
    entry->blocks = scheduler_->FindKernel(steps_)->segments();
  } else if (pick < 0.85) {
    spec.kernel = kernels_[static_cast<size_t>(Draw(0, 3))];
    spec.work.block_tasks = entry->blocks = Draw(1, 4000);
  } else if (pick < 0.95) {
    spec.work.kind = TaskKind::kMemcpy;
    spec.work.copy.direction =
        Chance(0.5) ? CopyDirection::kHostToDevice : CopyDirection::kDeviceToHost;
    spec.work.copy.pinned = Chance(0.5);
    spec.work.copy.bytes = entry->blocks = Draw(1, 8 << 20);
  } else {
    spec.work.kind = TaskKind::kOpaque;
    spec.work.host_function = [](void*, void*) {};
    spec.work.declared_ns = Draw(1, 200) * kUs;
    entry->blocks = 1;
  }
  TicketId waits[1];
  if (!submitted_.empty() && Chance(0.1)) {
    waits[0] = submitted_[static_cast<size_t>(Draw(0, static_cast<int64_t>(submitted_.size()) - 1))]
                   ->ticket;
    spec.wait_tickets = waits;
  }
  spec.detached = Chance(0.7);
  spec.callback_user = entry.get();
  spec.callback = [](void* user, const CompletionRecord& record) {
    auto* mine = static_cast<Submitted*>(user);
    ++mine->callbacks;
    mine->record = record;
  };
  const auto ticket = source.app_class == AppClass::kLatencyCritical ? scheduler_->SubmitLc(spec)
                                                                     : scheduler_->SubmitBe(spec);
  if (!ticket.ok()) return;
  entry->ticket = *ticket;
  submitted_.push_back(std::move(entry));
}

void World::Step() {
  const double pick = random_.Uniform();
  if (pick < 0.75) {
    SubmitOne();
  } else if (pick < 0.95) {
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + Draw(1, 1500) * kUs).ok());
  } else if (pick < 0.97 && !submitted_.empty()) {
    scheduler_->Cancel(submitted_.back()->ticket).IgnoreError();
  } else if (pick < 0.99) {
    const Source& source =
        sources_[static_cast<size_t>(Draw(0, static_cast<int64_t>(sources_.size()) - 1))];
    scheduler_->ReserveCapSm({source.app, static_cast<int32_t>(Draw(0, 140)), Chance(0.5)})
        .IgnoreError();
  } else {
    // In time or not: what is hung keeps the device busy.
    scheduler_->Quiesce(scheduler_->NowNs() + 40 * kMs).IgnoreError();
    scheduler_->Resume().IgnoreError();
  }
  const absl::Status invariants = scheduler_->CheckInvariants();
  ASSERT_TRUE(invariants.ok()) << invariants;
}

void World::Check() {
  for (const auto& entry : submitted_) {
    ASSERT_EQ(entry->callbacks, 1) << "ticket " << entry->ticket.value;
    ASSERT_NE(entry->record.verdict, Verdict::kPending);
    cut_queries_ += entry->record.kernel == graph_ && entry->record.launches > 1 ? 1 : 0;
    ASSERT_LE(entry->record.block_tasks, entry->blocks);
    if (entry->record.verdict == Verdict::kOk) {
      ASSERT_EQ(entry->record.block_tasks, entry->blocks) << "ticket " << entry->ticket.value;
    }
  }
  const SchedulerStats stats = scheduler_->Stats();
  ASSERT_EQ(stats.tasks_pending, 0);
  ASSERT_EQ(stats.capsms_used, 0);
  if (cuts_) return;  // nobody has the records of pieces
  int64_t executed = 0;
  for (AppId app : scheduler_->Apps()) executed += scheduler_->StatsOf(app)->block_tasks;
  int64_t recorded = 0;
  for (const auto& entry : submitted_) recorded += entry->record.block_tasks;
  ASSERT_EQ(executed, recorded) << "a block task ran twice or was lost";
}

void World::Run() {
  for (int64_t steps = Draw(20, 120); steps > 0 && !::testing::Test::HasFatalFailure(); --steps)
    Step();
  if (Chance(0.7)) scheduler_->Drain(scheduler_->NowNs() + 2000 * kMs).IgnoreError();
  scheduler_->Shutdown(scheduler_->NowNs() + Draw(0, 100) * kMs).IgnoreError();
  Check();
}

uint64_t FirstSeed() {
  const char* text = std::getenv("GPUSHARE_FAULT_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}
int SeedCount() {
  if (std::getenv("GPUSHARE_FAULT_SEED") != nullptr) return 1;
  const char* text = std::getenv("GPUSHARE_FAULT_SEEDS");
  return text == nullptr ? kDefaultSeeds : std::atoi(text);
}

int SeedsInPieces() { return (SeedCount() + 4) / 5; }

TEST(FaultSimulation, EveryAcceptedTaskCompletesExactlyOnceWhateverFails) {
  int simulated = 0;
  for (int i = 0; i < SeedCount(); ++i) {
    const uint64_t seed = FirstSeed() + static_cast<uint64_t>(i);
    SCOPED_TRACE("replay with GPUSHARE_FAULT_SEED=" + std::to_string(seed));
    World world(seed);
    if (!world.ok()) continue;
    world.Run();
    ++simulated;
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(simulated, SeedCount() / 2);
}

TEST(FaultSimulation, QueriesInPiecesCompleteExactlyOnceWhateverFails) {
  int64_t cut_queries = 0;
  for (int i = 0; i < SeedsInPieces(); ++i) {
    const uint64_t seed = FirstSeed() + static_cast<uint64_t>(i);
    SCOPED_TRACE("replay with GPUSHARE_FAULT_SEED=" + std::to_string(seed));
    World world(seed, true);
    if (::testing::Test::HasFatalFailure()) return;
    if (!world.ok()) continue;
    world.Run();
    cut_queries += world.cut_queries();
    if (::testing::Test::HasFatalFailure()) return;
  }
  if (SeedCount() > 1) {
    EXPECT_GT(cut_queries, SeedsInPieces() / 2);
  }
}

TEST(FaultSimulation, TheSameSeedDecidesTheSame) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    World first(seed);
    World second(seed);
    if (!first.ok()) continue;
    first.Run();
    second.Run();
    EXPECT_EQ(first.digest(), second.digest()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpushare::core
