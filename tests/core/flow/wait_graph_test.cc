// Random graphs of waits between LC and BE tasks: whatever is acyclic ends, under every policy.
//
// A ticket exists before a task can name it, and a queue keeps its order, so each such graph is
// acyclic. Each seed is one graph: apps with random promises, tasks of all kinds, explicit queries,
// waits for earlier tickets of any app. Every LC task must end, with nothing else to push it. Then
// LC tasks that wait for all that is left must end too. Tasks that no LC task waits for may be held
// by the apps' bounds, so nothing is asked of them before.
//
// GPUSHARE_WAIT_GRAPHS sets the number of graphs, GPUSHARE_WAIT_GRAPH replays one.

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"
#include "src/core/base/random.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;
constexpr int64_t kSecond = 1000 * kMs;

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr int kDefaultGraphs = 200;
#else
constexpr int kDefaultGraphs = 3000;
#endif

class WaitGraph {
 public:
  explicit WaitGraph(uint64_t seed) : random_(seed) {
    policies_ = PolicyNames();
    policy_ = policies_[seed % policies_.size()];
    Build(seed);
  }

  void Run();
  const std::string& policy() const { return policy_; }

 private:
  struct Source {
    QueueId queue;
    AppClass app_class;
    QueryId query;  // open on this queue; 0: none
  };

  int64_t Draw(int64_t low, int64_t high) {  // inclusive
    return low + static_cast<int64_t>(random_.Uniform() * static_cast<double>(high - low + 1));
  }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  template <class T>
  const T& One(const std::vector<T>& of) {
    return of[static_cast<size_t>(Draw(0, static_cast<int64_t>(of.size()) - 1))];
  }
  void Build(uint64_t seed);
  void Register();
  void AddApp(AppClass app_class, int number);
  Promise RandomPromise();
  void Warm();
  void SubmitOne();
  void FillLc(TaskSpec& spec);
  void FillBe(TaskSpec& spec);
  void EndQueries();
  void ExpectEnded(const std::vector<TicketId>& tickets);
  std::vector<TicketId> SubmitClosing();

  Random random_;
  std::vector<std::string> policies_;
  std::string policy_;
  std::unique_ptr<Scheduler> scheduler_;
  KernelId query_, grid_, workers_, steps_, whole_;
  std::vector<Source> sources_;
  std::vector<size_t> lc_;  // indices of LC sources
  std::vector<TicketId> all_;
  std::vector<TicketId> lc_tickets_;
};

KernelDesc Kernel(const char* name, int64_t block_ns, bool evictable) {
  KernelDesc kernel;
  kernel.name = name;
  kernel.evictable = evictable;
  kernel.resources.workers_per_sm_max = 8;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = block_ns;
  return kernel;
}

KernelDesc Graph(const char* name, int64_t node_ns, int repeat) {
  KernelDesc graph;
  graph.name = name;
  graph.code = GraphCode();
  graph.simulation.present = true;
  graph.simulation.nodes.push_back({node_ns, 132, repeat, true, {}});
  return graph;
}

void WaitGraph::Register() {
  query_ = *scheduler_->RegisterKernel(Graph("query", 20 * kUs, 10));
  grid_ = *scheduler_->RegisterKernel(Kernel("grid", 50 * kUs, false));
  workers_ = *scheduler_->RegisterKernel(Kernel("workers", 100 * kUs, true));
  steps_ = *scheduler_->RegisterKernel(Graph("steps", 30 * kUs, 200));  // BE: in segments
  whole_ = *scheduler_->RegisterKernel(Graph("whole", 8 * kMs, 1));     // one node cannot be cut
}

Promise WaitGraph::RandomPromise() {
  Promise promise;
  if (Chance(0.5)) promise.target_ns = Draw(100 * kUs, 8 * kMs);
  if (Chance(0.5)) promise.p99_bound = 1.0 + random_.Uniform() * random_.Uniform();
  if (Chance(0.3)) promise.p99_alone_ns = Draw(200 * kUs, 2 * kMs);
  return promise;
}

void WaitGraph::AddApp(AppClass app_class, int number) {
  AppOptions app;
  app.name = "app" + std::to_string(number);
  app.app_class = app_class;
  app.tasks_max = 256;
  if (app_class == AppClass::kLatencyCritical) app.promise = RandomPromise();
  const AppId id = *scheduler_->CreateApp(app);
  for (int64_t q = Draw(1, 3); q > 0; --q) {
    if (app_class == AppClass::kLatencyCritical) lc_.push_back(sources_.size());
    sources_.push_back({*scheduler_->CreateQueue(id), app_class, QueryId{}});
  }
}

void WaitGraph::Build(uint64_t seed) {
  sim::SimOptions options;
  options.seed = seed;
  SchedulerOptions scheduler_options;
  scheduler_options.splits_max = Chance(0.8) ? static_cast<int32_t>(Draw(1, kMaxSplits)) : 0;
  scheduler_ =
      Scheduler::Create(scheduler_options, sim::MakeSimDevice(options).value(),
                        models::MakeOnlineModel(options.profile), MakePolicy(policy_).value())
          .value();
  Register();
  const int lc_apps = static_cast<int>(Draw(1, 2));
  const int apps = lc_apps + static_cast<int>(Draw(1, 3));
  for (int i = 0; i < apps; ++i) {
    AddApp(i < lc_apps ? AppClass::kLatencyCritical : AppClass::kBestEffort, i);
  }
}

void WaitGraph::FillLc(TaskSpec& spec) {
  const double pick = random_.Uniform();
  if (pick < 0.7) {
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = query_;
  } else if (pick < 0.85) {
    spec.kernel = grid_;
    spec.work.block_tasks = Draw(1, 2000);
  } else {
    spec.work.kind = TaskKind::kMemcpy;
    spec.work.copy = {CopyDirection::kHostToDevice, Chance(0.5), Draw(1, 4 << 20)};
  }
}

// Up to some 20 ms: longer than most targets.
void WaitGraph::FillBe(TaskSpec& spec) {
  const double pick = random_.Uniform();
  if (pick < 0.35) {
    spec.kernel = workers_;
    spec.work.block_tasks = Draw(1, 200'000);
  } else if (pick < 0.5) {
    spec.kernel = grid_;
    spec.work.block_tasks = Draw(1, 100'000);
  } else if (pick < 0.65) {
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = Chance(0.5) ? steps_ : whole_;
  } else if (pick < 0.8) {
    spec.work.kind = TaskKind::kMemcpy;
    spec.work.copy = {Chance(0.5) ? CopyDirection::kHostToDevice : CopyDirection::kDeviceToHost,
                      Chance(0.5), Draw(1, 64 << 20)};
  } else {
    spec.work.kind = TaskKind::kOpaque;
    spec.work.host_function = [](void*, void*) {};
    spec.work.declared_ns = Draw(1, 20 * kMs);
  }
}

void WaitGraph::SubmitOne() {
  Source& source =
      sources_[static_cast<size_t>(Draw(0, static_cast<int64_t>(sources_.size()) - 1))];
  const bool lc = source.app_class == AppClass::kLatencyCritical;
  TaskSpec spec;
  spec.queue = source.queue;
  if (lc) {
    FillLc(spec);
    if (source.query.value == 0 && Chance(0.3))
      source.query = *scheduler_->BeginQuery(source.queue, 0);
    spec.query = source.query;
  } else {
    FillBe(spec);
  }
  std::vector<TicketId> waits;
  if (!all_.empty() && Chance(lc ? 0.6 : 0.4)) {
    for (int64_t i = Draw(1, 3); i > 0; --i) waits.push_back(One(all_));
    std::sort(waits.begin(), waits.end(), [](TicketId a, TicketId b) { return a.value < b.value; });
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  }
  spec.wait_tickets = waits;
  const auto ticket = lc ? scheduler_->SubmitLc(spec) : scheduler_->SubmitBe(spec);
  ASSERT_TRUE(ticket.ok()) << ticket.status();
  all_.push_back(*ticket);
  if (lc) lc_tickets_.push_back(*ticket);
  if (source.query.value != 0 && Chance(0.6)) {
    ASSERT_TRUE(scheduler_->EndQuery(source.query).ok());
    source.query = QueryId{};
  }
}

void WaitGraph::EndQueries() {
  for (Source& source : sources_) {
    if (source.query.value == 0) continue;
    ASSERT_TRUE(scheduler_->EndQuery(source.query).ok());
    source.query = QueryId{};
  }
}

// Minutes, because uncuttable work beside a loaded app waits for credit first.
void WaitGraph::ExpectEnded(const std::vector<TicketId>& tickets) {
  const TimeNs limit_ns = scheduler_->NowNs() + 600 * kSecond;
  for (const TicketId ticket : tickets) {
    const absl::Status status = scheduler_->Wait(ticket, limit_ns);
    ASSERT_TRUE(status.ok()) << "ticket " << ticket.value << ": " << status;
    ASSERT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kOk);
  }
}

// LC tasks that wait for every task there is.
std::vector<TicketId> WaitGraph::SubmitClosing() {
  std::vector<TicketId> closing;
  for (size_t first = 0; first < all_.size(); first += kMaxWaitsPerTask) {
    TaskSpec spec;
    spec.queue = sources_[One(lc_)].queue;
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = query_;
    spec.wait_tickets = absl::MakeConstSpan(all_).subspan(first, kMaxWaitsPerTask);
    closing.push_back(*scheduler_->SubmitLc(spec));
  }
  return closing;
}

// From these queries the library knows what one takes, so that the bounds hold BE work.
void WaitGraph::Warm() {
  for (int64_t i = Draw(0, 6); i > 0; --i) {
    TaskSpec spec;
    spec.queue = sources_[One(lc_)].queue;
    spec.work.kind = TaskKind::kGraph;
    spec.kernel = query_;
    spec.detached = true;
    ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + Draw(0, 2 * kMs)).ok());
  }
}

void WaitGraph::Run() {
  Warm();
  for (int64_t tasks = Draw(2, 40); tasks > 0 && !::testing::Test::HasFatalFailure(); --tasks) {
    SubmitOne();
    if (Chance(0.2)) {
      ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + Draw(1, 3 * kMs)).ok());
    }
    const absl::Status invariants = scheduler_->CheckInvariants();
    ASSERT_TRUE(invariants.ok()) << invariants;
  }
  EndQueries();
  ExpectEnded(lc_tickets_);
  if (::testing::Test::HasFatalFailure()) return;
  ExpectEnded(SubmitClosing());
  if (::testing::Test::HasFatalFailure()) return;
  ASSERT_EQ(scheduler_->Stats().tasks_pending, 0);
  const absl::Status invariants = scheduler_->CheckInvariants();
  ASSERT_TRUE(invariants.ok()) << invariants;
}

uint64_t FirstGraph() {
  const char* text = std::getenv("GPUSHARE_WAIT_GRAPH");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}
int GraphCount() {
  if (std::getenv("GPUSHARE_WAIT_GRAPH") != nullptr) return 1;
  const char* text = std::getenv("GPUSHARE_WAIT_GRAPHS");
  return text == nullptr ? kDefaultGraphs : std::atoi(text);
}

TEST(WaitGraph, WhateverIsAcyclicEndsUnderEveryPolicy) {
  for (int i = 0; i < GraphCount(); ++i) {
    const uint64_t seed = FirstGraph() + static_cast<uint64_t>(i);
    WaitGraph graph(seed);
    SCOPED_TRACE("policy " + graph.policy() +
                 ", replay with GPUSHARE_WAIT_GRAPH=" + std::to_string(seed));
    graph.Run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gpushare::core
