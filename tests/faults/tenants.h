// BE tenants and an LC service on one simulated device, driven in virtual time: each tenant keeps a
// few tasks pending on its one queue, the service gets a Poisson stream of queries. Public headers
// only. Threads: each test's own.
//
//   Tenants tenants("adaptive");
//   const int train = tenants.AddBe("train", 9, "sincos_27us", 52'800);
//   tenants.AddService({.target_ns = 2 * kMs});
//   tenants.RunUntil(500 * kMs);

#ifndef GPUSHARE_TESTS_FAULTS_TENANTS_H_
#define GPUSHARE_TESTS_FAULTS_TENANTS_H_

#include <gpushare/gpushare.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {

class Tenants {
 public:
  struct Service {
    int64_t target_ns = 0;
    int64_t p99_alone_ns = 0;
    double p99_bound = 0;
    int64_t solo_ns = 0;
    int64_t interval_ns = 2'200 * kUs;  // mean; 0.3 of the device for chain1
  };

  explicit Tenants(const char* policy) {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "sim";
    options.drive = GPUSHARE_DRIVE_POLL;
    options.policy = policy;
    options.seed = 1;
    EXPECT_OK(gpushare_runtime_create(&options, &runtime_));
  }
  Tenants(const Tenants&) = delete;
  Tenants& operator=(const Tenants&) = delete;
  ~Tenants() {
    EXPECT_OK(gpushare_runtime_shutdown(runtime_, now_ns() + 60'000 * kMs));
    for (auto& [name, kernel] : kernels_) EXPECT_OK(gpushare_kernel_release(kernel));
    for (gpushare_queue* queue : queues_) EXPECT_OK(gpushare_queue_release(queue));
    for (gpushare_app* app : apps_) EXPECT_OK(gpushare_app_release(app));
    EXPECT_OK(gpushare_runtime_release(runtime_));
  }

  // Its index. From `begin_ns` on it keeps four tasks of `block_tasks` block tasks pending.
  int AddBe(const char* name, double weight, const char* kernel, int64_t block_tasks,
            int64_t begin_ns = 0) {
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name);
    options.weight = weight;
    Be be;
    be.app = NewApp(options, &be.queue);
    be.task.kernel = Kernel(kernel);
    be.task.block_tasks = block_tasks;
    be.begin_ns = begin_ns;
    be_.push_back(be);
    return static_cast<int>(be_.size()) - 1;
  }
  // The same with pinned copies of `bytes`.
  int AddCopies(const char* name, double weight, gpushare_copy_direction direction, int64_t bytes) {
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name);
    options.weight = weight;
    Be be;
    be.app = NewApp(options, &be.queue);
    be.task.kind = GPUSHARE_TASK_MEMCPY;
    be.task.copy_direction = direction;
    be.task.copy_size_bytes = bytes;
    be_.push_back(be);
    return static_cast<int>(be_.size()) - 1;
  }
  // The same with opaque work of `ns`.
  int AddOpaque(const char* name, double weight, int64_t ns) {
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name);
    options.weight = weight;
    Be be;
    be.app = NewApp(options, &be.queue);
    be.task.kind = GPUSHARE_TASK_OPAQUE;
    be.task.declared_ns = ns;
    be.task.enqueue = [](void*, void*) {};
    be_.push_back(be);
    return static_cast<int>(be_.size()) - 1;
  }
  // A kernel whose speed is that of its workers: an SM of eight workers is eight times as fast as
  // one worker.
  void AddProportionalKernel(const char* name) {
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    record.block_task_ns = 27 * kUs;
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.workers_per_sm_max = 8;
    options.evictable = GPUSHARE_CHOICE_YES;
    options.simulation = &record;
    gpushare_kernel* kernel = nullptr;
    EXPECT_OK(gpushare_kernel_register(runtime_, &options, &kernel));
    kernels_.emplace_back(name, kernel);
  }
  void SetQuota(int be, int32_t capsms, bool packed) {
    gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
    options.capsms = capsms;
    options.packed = packed ? 1 : 0;
    EXPECT_OK(gpushare_reserve_capsm(be_[static_cast<size_t>(be)].app, &options));
  }

  void AddService(const Service& service) {
    gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
    options.target_ns = service.target_ns;
    options.p99_alone_ns = service.p99_alone_ns;
    options.p99_bound = service.p99_bound;
    options.solo_ns = service.solo_ns;
    lc_app_ = NewApp(options, &lc_queue_);
    lc_task_.kernel = Kernel("chain1");
    service_ = service;
    next_query_ns_ = now_ns() + 10 * kMs;
  }

  void RunUntil(int64_t end_ns) {
    while (now_ns() < end_ns) {
      for (Be& be : be_) Feed(be);
      while (lc_queue_ != nullptr && now_ns() >= next_query_ns_) SubmitQuery();
      const int64_t step_ns = std::min(end_ns, now_ns() + 300 * kUs);
      EXPECT_OK(gpushare_poll_until(
          runtime_, lc_queue_ == nullptr ? step_ns : std::min(step_ns, next_query_ns_)));
      CollectQueries();
    }
  }

  // Device time, as the work of completed block tasks alone on the device.
  double Work(int be) const {
    return static_cast<double>(Api::AppStats(be_[static_cast<size_t>(be)].app).work_ns);
  }
  int64_t Completed(int be) const {
    return Api::AppStats(be_[static_cast<size_t>(be)].app).completed;
  }
  std::vector<double> AllWork() const {
    std::vector<double> work;
    for (size_t i = 0; i < be_.size(); ++i) work.push_back(Work(static_cast<int>(i)));
    return work;
  }
  // Of the work since `before`.
  double Share(int be, const std::vector<double>& before = {}) const {
    double all = 0;
    double own = 0;
    for (size_t i = 0; i < be_.size(); ++i) {
      const double work = Work(static_cast<int>(i)) - (before.empty() ? 0 : before[i]);
      all += work;
      if (static_cast<int>(i) == be) own = work;
    }
    return all > 0 ? own / all : 0;
  }
  // What the tenant has of the work of all of these.
  double ShareAmong(int be, const std::vector<int>& tenants) const {
    double all = 0;
    for (const int tenant : tenants) all += Work(tenant);
    return all > 0 ? Work(be) / all : 0;
  }
  // The place of the tenant's task that completed last.
  int32_t LastPlace(int be) const { return be_[static_cast<size_t>(be)].last_place; }

  const std::vector<int64_t>& latencies_ns() const { return latencies_ns_; }
  // Of the completed queries and the open ones that are late by now. Most queries must have
  // completed: a share of a few says nothing.
  double LateShare(int64_t target_ns) const {
    const int64_t expected = now_ns() / service_.interval_ns;
    EXPECT_GE(static_cast<int64_t>(latencies_ns_.size()), expected * 3 / 4);
    const auto late = std::count_if(latencies_ns_.begin(), latencies_ns_.end(),
                                    [&](int64_t latency) { return latency > target_ns; });
    const auto open_late = std::count_if(open_.begin(), open_.end(), [&](const Query& query) {
      return now_ns() - query.arrival_ns > target_ns;
    });
    return static_cast<double>(late + open_late) /
           static_cast<double>(std::max<size_t>(latencies_ns_.size() + open_late, 1));
  }
  int64_t now_ns() const {
    int64_t now_ns = 0;
    EXPECT_OK(gpushare_now_ns(runtime_, &now_ns));
    return now_ns;
  }

 private:
  struct Be {
    gpushare_app* app = nullptr;
    gpushare_queue* queue = nullptr;
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    int64_t begin_ns = 0;
    int32_t last_place = -1;
    std::array<gpushare_ticket, 4> pending{};
  };
  struct Query {
    gpushare_ticket ticket = {0};
    int64_t arrival_ns = 0;
  };

  gpushare_app* NewApp(const gpushare_app_options& options, gpushare_queue** queue) {
    gpushare_app* app = nullptr;
    EXPECT_OK(gpushare_app_create(runtime_, &options, &app));
    EXPECT_OK(gpushare_queue_create(app, queue));
    apps_.push_back(app);
    queues_.push_back(*queue);
    return app;
  }
  gpushare_kernel* Kernel(const char* name) {
    for (auto& [known, kernel] : kernels_) {
      if (known == name) return kernel;
    }
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    gpushare_kernel* kernel = nullptr;
    EXPECT_OK(gpushare_kernel_register(runtime_, &options, &kernel));
    kernels_.emplace_back(name, kernel);
    return kernel;
  }

  bool Poll(gpushare_ticket ticket, gpushare_completion_record* record) const {
    gpushare_bool done = 0;
    EXPECT_OK(gpushare_ticket_poll(runtime_, ticket, &done));
    if (done == 0) return false;
    EXPECT_OK(gpushare_ticket_record(runtime_, ticket, record));
    EXPECT_OK(gpushare_ticket_release(runtime_, ticket));
    return true;
  }
  void Feed(Be& be) const {
    if (now_ns() < be.begin_ns) return;
    for (gpushare_ticket& ticket : be.pending) {
      gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
      if (ticket.value != 0) {
        if (!Poll(ticket, &record)) continue;
        be.last_place = record.place;
      }
      EXPECT_OK(gpushare_submit_be(be.queue, &be.task, &ticket));
    }
  }
  void SubmitQuery() {
    lc_task_.arrival_ns = next_query_ns_;
    Query query{{0}, next_query_ns_};
    EXPECT_OK(gpushare_submit_lc(lc_queue_, &lc_task_, &query.ticket));
    open_.push_back(query);
    random_ = random_ * 1'664'525U + 1'013'904'223U;
    next_query_ns_ += static_cast<int64_t>(-std::log((random_ + 1.0) / 4294967297.0) *
                                           static_cast<double>(service_.interval_ns));
  }
  void CollectQueries() {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    while (!open_.empty() && Poll(open_.front().ticket, &record)) {
      latencies_ns_.push_back(record.complete_ns - open_.front().arrival_ns);
      open_.pop_front();
    }
  }

  gpushare_runtime* runtime_ = nullptr;
  std::vector<gpushare_app*> apps_;
  std::vector<gpushare_queue*> queues_;
  std::vector<std::pair<std::string, gpushare_kernel*>> kernels_;
  std::vector<Be> be_;
  gpushare_app* lc_app_ = nullptr;
  gpushare_queue* lc_queue_ = nullptr;
  gpushare_task_options lc_task_ = GPUSHARE_TASK_OPTIONS_INIT;
  Service service_;
  std::deque<Query> open_;
  std::vector<int64_t> latencies_ns_;
  int64_t next_query_ns_ = 0;
  uint32_t random_ = 7;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_FAULTS_TENANTS_H_
