// An LC app with a Poisson stream of queries of one length, and BE apps that always have a task, on
// the simulated device.
//
//   OpenLoop loop("adaptive", {.load = 0.5, .p99_bound = 1.05, .p99_alone_ns = alone_ns});
//   const int be = loop.AddBe({.duration_ns = 5 * kMs});
//   loop.Run(2'000);   // queries
//   loop.P99Ns(), loop.Rate(be)

#ifndef GPUSHARE_TESTS_CORE_FLOW_OPEN_LOOP_H_
#define GPUSHARE_TESTS_CORE_FLOW_OPEN_LOOP_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"

namespace gpushare::core {

class OpenLoop {
 public:
  struct Service {
    double load = 0;  // 0: it never sends a query
    int64_t solo_ns = 667'000;
    double p99_bound = 0;
    double p50_bound = 0;
    int64_t p99_alone_ns = 0;
    uint64_t seed = 1;
    int64_t target_ns = 0;
    std::vector<SpeedPoint> speed = {};  // over SMs; none: in proportion
    int32_t nodes = 1;
    int32_t sms = 0;  // that each node occupies; 0: all
    bool drop_late = false;
    int32_t queues = 1;  // each query goes to the next one
  };
  struct Be {
    int64_t duration_ns = 0;    // of a task alone on the whole device
    int64_t block_task_ns = 0;  // > 0: evictable, with such block tasks
    int tasks = 0;              // 0: always another
    int32_t nodes = 1;          // of a graph: more than one run in segments
    int32_t sms = 0;            // that each node of a graph occupies; 0: all
    bool opaque = false;        // declared to take duration_ns
  };

  using WrapModel = std::unique_ptr<CostModel> (*)(std::unique_ptr<CostModel>);

  OpenLoop(const char* policy, const Service& service, WrapModel wrap = nullptr)
      : service_(service), random_(service.seed) {
    auto device = sim::MakeSimDevice({});
    EXPECT_TRUE(device.ok());
    const DeviceProfile profile = (*device)->capabilities().profile;
    sms_ = profile.sm_count;
    std::unique_ptr<CostModel> model = models::MakeOnlineModel(profile);
    if (wrap != nullptr) model = wrap(std::move(model));
    SchedulerOptions scheduler_options;
    scheduler_options.report = [this](const std::string& text) { reports_.push_back(text); };
    auto scheduler = Scheduler::Create(scheduler_options, *std::move(device), std::move(model),
                                       *MakePolicy(policy));
    EXPECT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
    AppOptions options;
    options.name = "service";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.p99_bound = service.p99_bound;
    options.promise.p50_bound = service.p50_bound;
    options.promise.p99_alone_ns = service.p99_alone_ns;
    options.promise.target_ns = service.target_ns;
    options.drop_late = service.drop_late;
    lc_app_ = *scheduler_->CreateApp(options);
    for (int32_t i = 0; i < service.queues; ++i) {
      lc_queues_.push_back(*scheduler_->CreateQueue(lc_app_));
    }
    lc_.kernel = Graph(
        "query", {{service.solo_ns / service.nodes, Sms(service.sms), service.nodes, true, {}}},
        service.speed);
    lc_.work.kind = TaskKind::kGraph;
  }

  ~OpenLoop() { ending_ = true; }
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  int AddBe(const Be& be) {
    const std::string name = "be" + std::to_string(tenants_.size());
    AppOptions options;
    options.name = name;
    auto tenant = std::make_unique<Tenant>();
    tenant->owner = this;
    tenant->app = *scheduler_->CreateApp(options);
    tenant->spec.queue = *scheduler_->CreateQueue(tenant->app);
    tenant->endless = be.tasks == 0;
    tenant->left = be.tasks;
    if (be.block_task_ns > 0) {
      KernelDesc kernel;
      kernel.name = name;
      kernel.evictable = true;
      kernel.resources.workers_per_sm_max = 8;
      kernel.simulation.present = true;
      kernel.simulation.block_task_ns = be.block_task_ns;
      tenant->spec.kernel = *scheduler_->RegisterKernel(kernel);
      tenant->spec.work.block_tasks =
          std::max<int64_t>(1, be.duration_ns / be.block_task_ns) * 8 * sms_;
    } else if (be.opaque) {
      tenant->spec.work.kind = TaskKind::kOpaque;
      tenant->spec.work.host_function = [](void*, void*) {};
      tenant->spec.work.declared_ns = be.duration_ns;
    } else {
      tenant->spec.kernel =
          Graph(name, {{be.duration_ns / be.nodes, Sms(be.sms), be.nodes, true, {}}});
      tenant->spec.work.kind = TaskKind::kGraph;
    }
    tenant->spec.detached = true;
    tenant->spec.callback = [](void* user, const CompletionRecord& record) {
      auto* const of = static_cast<Tenant*>(user);
      if (of->owner->ending_) return;
      EXPECT_EQ(record.verdict, Verdict::kOk);
      of->longest_ns = std::max(of->longest_ns, record.complete_ns - record.submit_ns);
      ++of->done;
      of->owner->Feed(*of);
    };
    tenant->spec.callback_user = tenant.get();
    tenants_.push_back(std::move(tenant));
    for (int ahead = 0; ahead < 3; ++ahead) Feed(*tenants_.back());
    return static_cast<int>(tenants_.size()) - 1;
  }

  // Sends so many queries and waits for them.
  void Run(int queries) {
    std::exponential_distribution<double> gap(service_.load /
                                              static_cast<double>(service_.solo_ns));
    const size_t expected = latencies_ns_.size() + static_cast<size_t>(queries);
    double arrival_ns = static_cast<double>(scheduler_->NowNs());
    for (int i = 0; i < queries; ++i) {
      arrival_ns += gap(random_);
      const auto at_ns = static_cast<TimeNs>(arrival_ns);
      if (scheduler_->NowNs() < at_ns) {
        ASSERT_TRUE(scheduler_->PollUntil(at_ns).ok());
      }
      Send(at_ns);
    }
    while (latencies_ns_.size() < expected) ASSERT_TRUE(scheduler_->Poll().ok());
  }
  // Sends one query now and waits for it, as an engine does with a step. `next_within_ns`: as it
  // states.
  void Step(int64_t next_within_ns = 0) {
    lc_.next_within_ns = next_within_ns;
    Send(scheduler_->NowNs());
    const size_t expected = sent_.size();
    while (latencies_ns_.size() + forgotten_ < expected) ASSERT_TRUE(scheduler_->Poll().ok());
    lc_.next_within_ns = 0;
  }
  void SetLoad(double load) { service_.load = load; }
  // From now on queries take so much longer, whatever runs beside them.
  void SlowDown(double factor) {
    const double solo_ns = factor * static_cast<double>(service_.solo_ns);
    lc_.kernel = Graph("slower query", {{static_cast<int64_t>(solo_ns), Sms(0), 1, true, {}}});
  }
  // From now on queries take so long, and the load stays what it was.
  void Swap(int64_t solo_ns) {
    service_.solo_ns = solo_ns;
    lc_.kernel = Graph("model of " + std::to_string(solo_ns), {{solo_ns, Sms(0), 1, true, {}}});
  }
  void Update(const AppUpdate& update) { ASSERT_TRUE(scheduler_->UpdateApp(lc_app_, update).ok()); }
  // Forgets the latencies so far.
  void Forget() {
    forgotten_ += latencies_ns_.size();
    latencies_ns_.clear();
    answers_ns_.clear();
  }
  void RunFor(int64_t ns) { ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + ns).ok()); }

  int64_t QuantileNs(double q) const {
    std::vector<int64_t> sorted = latencies_ns_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
  }
  // Of queries that were answered.
  const std::vector<int64_t>& answers_ns() const { return answers_ns_; }
  int64_t dropped() const { return dropped_; }
  int64_t P99Ns() const { return QuantileNs(0.99); }
  double LateShare() const {
    const auto late = std::count_if(latencies_ns_.begin(), latencies_ns_.end(),
                                    [&](int64_t ns) { return ns > service_.target_ns; });
    return static_cast<double>(late) / static_cast<double>(latencies_ns_.size());
  }
  std::vector<TimeNs> ArrivalsNs() const {
    std::vector<TimeNs> arrivals_ns;
    for (const Sent& sent : sent_) arrivals_ns.push_back(sent.arrival_ns);
    return arrivals_ns;
  }
  int64_t done(int be) const { return tenants_[static_cast<size_t>(be)]->done; }
  int64_t LongestNs(int be) const { return tenants_[static_cast<size_t>(be)]->longest_ns; }
  // Work of completed block tasks, over the time so far.
  double Rate(int be) const {
    const AppStats stats = *scheduler_->StatsOf(tenants_[static_cast<size_t>(be)]->app);
    return static_cast<double>(stats.work_ns) / static_cast<double>(scheduler_->NowNs());
  }
  AppGuarantee Guarantee() const { return *scheduler_->GuaranteeOf(lc_app_); }
  AppGuarantee GuaranteeOf(int be) const {
    return *scheduler_->GuaranteeOf(tenants_[static_cast<size_t>(be)]->app);
  }
  const std::vector<std::string>& reports() const { return reports_; }
  Scheduler& scheduler() { return *scheduler_; }

 private:
  struct Sent {
    OpenLoop* owner;
    TimeNs arrival_ns;
  };
  struct Tenant {
    OpenLoop* owner = nullptr;
    AppId app;
    TaskSpec spec;
    bool endless = false;
    int left = 0;
    int64_t done = 0;
    int64_t longest_ns = 0;
  };

  int32_t Sms(int32_t asked) const { return asked == 0 ? sms_ : asked; }
  KernelId Graph(const std::string& name, const std::vector<GraphNode>& nodes,
                 const std::vector<SpeedPoint>& speed = {}) {
    KernelDesc graph;
    graph.name = name;
    graph.code = GraphCode();
    graph.simulation.present = true;
    graph.simulation.nodes = nodes;
    graph.simulation.speed = speed;
    return *scheduler_->RegisterKernel(graph);
  }
  void Send(TimeNs at_ns) {
    lc_.arrival_ns = at_ns;
    lc_.queue = lc_queues_[sent_.size() % lc_queues_.size()];
    lc_.detached = true;
    sent_.push_back({this, at_ns});
    lc_.callback = [](void* user, const CompletionRecord& record) {
      auto* const query = static_cast<Sent*>(user);
      query->owner->latencies_ns_.push_back(record.complete_ns - query->arrival_ns);
      query->owner->dropped_ += record.verdict == Verdict::kDropped ? 1 : 0;
      if (record.verdict != Verdict::kOk) return;
      query->owner->answers_ns_.push_back(record.complete_ns - query->arrival_ns);
    };
    lc_.callback_user = &sent_.back();
    ASSERT_TRUE(scheduler_->SubmitLc(lc_).ok());
  }
  void Feed(Tenant& tenant) {
    if (!tenant.endless && tenant.left-- <= 0) return;
    EXPECT_TRUE(scheduler_->SubmitBe(tenant.spec).ok());
  }

  Service service_;
  bool ending_ = false;
  std::mt19937_64 random_;
  int32_t sms_ = 0;
  AppId lc_app_;
  std::vector<QueueId> lc_queues_;
  TaskSpec lc_;
  std::deque<Sent> sent_;
  std::vector<int64_t> latencies_ns_;
  size_t forgotten_ = 0;
  std::vector<int64_t> answers_ns_;
  int64_t dropped_ = 0;
  std::vector<std::unique_ptr<Tenant>> tenants_;
  std::vector<std::string> reports_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_TESTS_CORE_FLOW_OPEN_LOOP_H_
