// A server of four threads under load beside best-effort work, in C++ and without a GPU
// (docs/load-tests.md).
//
//   load_test_cc               200 queries of 5 ms on the simulated device in real time
//   load_test_cc 5000 400      400 queries of 5,000 us
//   load_test_cc chain1 400    400 queries of a graph of the built-in profile
//
// A thread of the load generator puts requests into a list, whether or not earlier ones are
// answered. Each thread of the pool takes the next one, runs its query and waits for it. A latency
// counts from the time when the request came into the list.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <gpushare/gpushare.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr double kLoad = 0.3;
constexpr int kThreads = 4;
constexpr int kStepsOutstanding = 2;

// Poisson arrivals, the same in each run and in each of the three programs.
class Gaps {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return -std::log(1 - static_cast<double>(state_ >> 11) / 9007199254740992.0);
  }

 private:
  uint64_t state_ = 7;
};

struct Latencies {
  double p50_us = 0;
  double p99_us = 0;
};

// What came and is not yet taken, and the latencies of what was answered.
class Requests {
 public:
  void Put() {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(SteadyClock::now());
    changed_.notify_one();
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  // False: closed, and nothing is left.
  bool Take(SteadyClock::time_point& came) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return false;
    came = waiting_.front();
    waiting_.pop_front();
    return true;
  }
  void Answered(SteadyClock::time_point came) {
    const std::lock_guard lock(mutex_);
    latency_us_.push_back(
        std::chrono::duration<double, std::micro>(SteadyClock::now() - came).count());
  }
  Latencies Quantiles() {
    std::sort(latency_us_.begin(), latency_us_.end());
    const auto at = [this](size_t percent) {
      return latency_us_[(latency_us_.size() * percent + 99) / 100 - 1];
    };
    return {at(50), at(99)};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<SteadyClock::time_point> waiting_;
  std::vector<double> latency_us_;
  bool closed_ = false;
};

// A name of the built-in profile, or a graph of 50 us kernels that takes so many microseconds.
gpushare::Kernel RegisterKernel(const gpushare::Runtime& runtime, const std::string& name) {
  gpushare::KernelOptions options;
  gpushare::SimulationRecord record;
  gpushare_graph_node node = {};
  node.duration_ns = 50'000;
  node.blocks = 132;
  node.repeat = std::atoi(name.c_str()) / 50;
  options.name = name.c_str();
  if (node.repeat > 0) {
    options.kind = GPUSHARE_TASK_GRAPH;
    record.nodes = &node;
    record.node_count = 1;
    options.simulation = &record;
    options.solo_ns = node.repeat * node.duration_ns;
  }
  return runtime.RegisterKernel(options).value();
}

// Training: when a step ends, its callback submits the next one.
struct Training {
  gpushare::Queue queue;
  gpushare::TaskOptions step;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> evictions{0};

  // A callback may pass its look at `stop` just before the shutdown, which then refuses the step.
  void Submit() {
    auto ticket = queue.SubmitBe(step);
    if (!ticket.ok() && stop && ticket.status().code() == GPUSHARE_FAILED_PRECONDITION) return;
    static_cast<void>(ticket.value());
  }
  static void OnStep(void* user, const gpushare_completion_record* record) {
    auto& training = *static_cast<Training*>(user);
    training.evictions += record->evictions;
    if (!training.stop) training.Submit();
  }
};

void Generate(Requests& requests, int queries, double service_ns) {
  Gaps gaps;
  SteadyClock::time_point due = SteadyClock::now();
  for (int i = 0; i < queries; ++i) {
    due += std::chrono::nanoseconds(std::llround(gaps.Next() * service_ns / kLoad));
    std::this_thread::sleep_until(due);
    requests.Put();
  }
  requests.Close();
}

// `alone_us`: the p99 of a run without steps; 0: this is that run.
Latencies Serve(const std::string& kernel, int queries, double alone_us, Training& training) {
  gpushare::RuntimeOptions options;
  options.device = "sim:realtime";
  const gpushare::Runtime runtime = gpushare::Runtime::Create(options).value();
  gpushare::AppOptions service;
  service.name = "service";
  service.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  service.p99_bound = alone_us > 0 ? 1.05 : 0;
  service.p99_alone_ns = std::llround(alone_us * 1e3);
  const gpushare::Queue queue = runtime.CreateApp(service).value().CreateQueue().value();
  const gpushare::Kernel model = RegisterKernel(runtime, kernel);
  const gpushare::Kernel gradient = RegisterKernel(runtime, "sincos_27us");
  gpushare::AppOptions background;
  background.name = "training";
  background.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  training.queue = runtime.CreateApp(background).value().CreateQueue().value();
  training.step.kernel = gradient.get();
  training.step.block_tasks = 100'000;
  training.step.detached = 1;
  training.step.callback = &Training::OnStep;
  training.step.callback_user = &training;
  for (int i = 0; alone_us > 0 && i < kStepsOutstanding; ++i) training.Submit();

  Requests requests;
  const auto service_ns = static_cast<double>(runtime.FindKernel(kernel).value().solo_ns);
  std::vector<std::thread> pool;
  pool.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    pool.emplace_back([&] {
      gpushare::TaskOptions request;
      request.kernel = model.get();
      SteadyClock::time_point came;
      while (requests.Take(came)) {
        if (queue.RunLc(request).value() == GPUSHARE_VERDICT_OK) requests.Answered(came);
      }
    });
  }
  Generate(requests, queries, service_ns);
  for (std::thread& thread : pool) thread.join();
  training.stop = true;
  if (gpushare::Status status = runtime.Shutdown(); !status.ok()) throw gpushare::Error(status);
  training.queue = gpushare::Queue();
  return requests.Quantiles();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kernel = argc > 1 ? argv[1] : "5000";
  const int queries = argc > 2 ? std::max(1, std::atoi(argv[2])) : 200;
  try {
    Training training;
    const Latencies alone = Serve(kernel, queries, 0, training);
    std::printf("alone: p50 %.1f us, p99 %.1f us\n", alone.p50_us, alone.p99_us);
    training.stop = false;
    const Latencies beside = Serve(kernel, queries, alone.p99_us, training);
    std::printf(
        "beside training: p50 %.1f us, p99 %.1f us, %.3f of alone; steps evicted %lld times\n",
        beside.p50_us, beside.p99_us, beside.p99_us / alone.p99_us,
        static_cast<long long>(training.evictions));
  } catch (const gpushare::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
