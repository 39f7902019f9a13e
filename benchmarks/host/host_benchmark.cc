// What the library costs on the host, through the public C API on the null device (every launch is
// complete at once, so that what is left is the library).
//
//   Submit        one BE submit: copy into a slot and push into the queue; goal 150 ns (median)
//   LcFastPath    one LC submit that launches by itself; goal 500 ns (median)
//   Flow          submit to complete, one thread that submits and polls; goal 1 million tasks/s
//   FlowThreaded  the same with the library's own scheduler thread
//
// Medians are of single calls, less the clock's own cost, which is measured at the start.

#include <benchmark/benchmark.h>
#include <gpushare/gpushare.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "benchmarks/harness/quantiles.h"

namespace {

using Clock = std::chrono::steady_clock;

int64_t NsBetween(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
}

void Check(gpushare_status status, const char* what) {
  if (status == GPUSHARE_OK) return;
  std::fprintf(stderr, "%s: %s: %s\n", what, gpushare_status_name(status),
               gpushare_last_error_message());
  std::exit(1);
}

// Two readings of the clock with nothing between them.
int64_t ClockCostNs() {
  static const int64_t cost = [] {
    std::vector<int64_t> costs;
    for (int i = 0; i < 100'000; ++i) {
      const Clock::time_point start = Clock::now();
      costs.push_back(NsBetween(start, Clock::now()));
    }
    return gpushare::benchmarks::Median(costs);
  }();
  return cost;
}

// A runtime on the null device with one LC and one BE app.
struct Fixture {
  gpushare_runtime* runtime = nullptr;
  gpushare_app* lc_app = nullptr;
  gpushare_app* be_app = nullptr;
  gpushare_queue* lc_queue = nullptr;
  gpushare_queue* be_queue = nullptr;
  gpushare_kernel* kernel = nullptr;
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
  uint64_t arguments[8] = {};  // 64 bytes, as a kernel with eight parameters has

  explicit Fixture(gpushare_drive drive) {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "null";
    options.drive = drive;
    Check(gpushare_runtime_create(&options, &runtime), "runtime_create");
    lc_app = MakeApp("lc", GPUSHARE_CLASS_LATENCY_CRITICAL);
    be_app = MakeApp("be", GPUSHARE_CLASS_BEST_EFFORT);
    Check(gpushare_queue_create(lc_app, &lc_queue), "queue_create");
    Check(gpushare_queue_create(be_app, &be_queue), "queue_create");
    gpushare_kernel_options kernel_options = GPUSHARE_KERNEL_OPTIONS_INIT;
    kernel_options.name = "kernel";
    kernel_options.evictable = GPUSHARE_CHOICE_YES;
    kernel_options.solo_ns = 100'000;
    Check(gpushare_kernel_register(runtime, &kernel_options, &kernel), "kernel_register");
    task.kernel = kernel;
    task.block_tasks = 1024;
    task.arguments = arguments;
    task.arguments_size_bytes = sizeof(arguments);
  }

  ~Fixture() {
    Check(gpushare_runtime_drain(runtime, GPUSHARE_NEVER), "drain");
    Check(gpushare_kernel_release(kernel), "kernel_release");
    Check(gpushare_queue_release(be_queue), "queue_release");
    Check(gpushare_queue_release(lc_queue), "queue_release");
    Check(gpushare_app_release(be_app), "app_release");
    Check(gpushare_app_release(lc_app), "app_release");
    Check(gpushare_runtime_release(runtime), "runtime_release");
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void Drain() { Check(gpushare_runtime_drain(runtime, GPUSHARE_NEVER), "drain"); }

 private:
  gpushare_app* MakeApp(const char* name, gpushare_app_class app_class) {
    gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
    options.name = name;
    options.app_class = app_class;
    options.tasks_max = 4096;
    gpushare_app* app = nullptr;
    Check(gpushare_app_create(runtime, &options, &app), "app_create");
    return app;
  }
};

using SubmitFunction = gpushare_status (*)(gpushare_queue*, const gpushare_task_options*,
                                           gpushare_ticket*) noexcept;

// Times single submits in batches; between batches everything completes. `callers_ticket`: the
// caller takes and releases the ticket; else the task is detached.
void MeasureSubmits(benchmark::State& state, SubmitFunction submit, bool latency_critical,
                    bool callers_ticket, int batch) {
  Fixture fixture(GPUSHARE_DRIVE_POLL);
  gpushare_queue* const queue = latency_critical ? fixture.lc_queue : fixture.be_queue;
  std::vector<gpushare_ticket> tickets(static_cast<size_t>(batch));
  std::vector<int64_t> times_ns;
  times_ns.reserve(size_t{1} << 22);
  const int64_t clock_ns = ClockCostNs();
  for (auto _ : state) {
    for (gpushare_ticket& ticket : tickets) {
      const Clock::time_point start = Clock::now();
      const gpushare_status status =
          submit(queue, &fixture.task, callers_ticket ? &ticket : nullptr);
      const Clock::time_point end = Clock::now();
      Check(status, "submit");
      if (times_ns.size() < times_ns.capacity())
        times_ns.push_back(NsBetween(start, end) - clock_ns);
    }
    state.PauseTiming();
    fixture.Drain();
    if (callers_ticket) {
      for (const gpushare_ticket ticket : tickets) {
        Check(gpushare_ticket_release(fixture.runtime, ticket), "ticket_release");
      }
    }
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * batch);
  state.counters["p50_ns"] = static_cast<double>(gpushare::benchmarks::Median(times_ns));
  state.counters["p99_ns"] = static_cast<double>(gpushare::benchmarks::Quantile(times_ns, 0.99));
  state.counters["clock_ns"] = static_cast<double>(clock_ns);
}

void Submit(benchmark::State& state) {
  MeasureSubmits(state, gpushare_submit_be, false, false, 256);
}
BENCHMARK(Submit);

void SubmitWithTicket(benchmark::State& state) {
  MeasureSubmits(state, gpushare_submit_be, false, true, 256);
}
BENCHMARK(SubmitWithTicket);

// One LC query at a time: its lane is free, so the submitting thread launches it.
void LcFastPath(benchmark::State& state) {
  MeasureSubmits(state, gpushare_submit_lc, true, false, 1);
}
BENCHMARK(LcFastPath);

void Flow(benchmark::State& state) {
  Fixture fixture(GPUSHARE_DRIVE_POLL);
  const int batch = static_cast<int>(state.range(0));
  for (auto _ : state) {
    for (int i = 0; i < batch; ++i) {
      Check(gpushare_submit_be(fixture.be_queue, &fixture.task, nullptr), "submit_be");
    }
    fixture.Drain();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(Flow)->Arg(64)->Arg(1024)->UseRealTime();

// As Flow, with the tasks spread over so many BE queues. Goal: 0.9 million tasks a second.
void FlowQueues(benchmark::State& state) {
  Fixture fixture(GPUSHARE_DRIVE_POLL);
  std::vector<gpushare_queue*> queues(static_cast<size_t>(state.range(0)));
  for (gpushare_queue*& queue : queues) {
    Check(gpushare_queue_create(fixture.be_app, &queue), "queue_create");
  }
  constexpr int kEach = 20;
  for (auto _ : state) {
    for (int i = 0; i < kEach; ++i) {
      for (gpushare_queue* const queue : queues) {
        Check(gpushare_submit_be(queue, &fixture.task, nullptr), "submit_be");
      }
    }
    fixture.Drain();
  }
  state.SetItemsProcessed(state.iterations() * kEach * state.range(0));
  for (gpushare_queue* const queue : queues) Check(gpushare_queue_release(queue), "queue_release");
}
BENCHMARK(FlowQueues)->Arg(50)->UseRealTime();

void FlowThreaded(benchmark::State& state) {
  Fixture fixture(GPUSHARE_DRIVE_THREAD);
  std::atomic<int64_t> completed{0};
  fixture.task.callback = [](void* user, const gpushare_completion_record*) {
    static_cast<std::atomic<int64_t>*>(user)->fetch_add(1, std::memory_order_relaxed);
  };
  fixture.task.callback_user = &completed;
  int64_t submitted = 0;
  for (auto _ : state) {
    gpushare_status status = GPUSHARE_OK;
    do {
      status = gpushare_submit_be(fixture.be_queue, &fixture.task, nullptr);
    } while (status == GPUSHARE_RESOURCE_EXHAUSTED);  // backpressure: the app's slots are full
    Check(status, "submit_be");
    ++submitted;
  }
  const Clock::time_point start = Clock::now();
  fixture.Drain();
  state.counters["drain_ns"] = static_cast<double>(NsBetween(start, Clock::now()));
  if (completed.load() != submitted) {
    std::fprintf(stderr, "%lld tasks were submitted, and %lld completed.\n",
                 static_cast<long long>(submitted), static_cast<long long>(completed.load()));
    std::exit(1);
  }
  state.SetItemsProcessed(submitted);
}
BENCHMARK(FlowThreaded)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
