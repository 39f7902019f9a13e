// What a process pays before its first task, through the public C API on the simulated device.
//
//   CreateRuntime  a runtime with the built-in profile; goal 2 ms
//   CreateApp      an app of 1,024 task slots; goal 50 us, and 100 KB until it is used
//   StartTrace     a trace of the default size, 64 MB when it is full
//
// Each counter `first_us` is the process's first call, where pages and caches are cold. The number
// of page faults does not depend on what else the machine does.

#include <benchmark/benchmark.h>
#include <gpushare/gpushare.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "benchmarks/harness/quantiles.h"

namespace {

using Clock = std::chrono::steady_clock;

void Check(gpushare_status status, const char* what) {
  if (status == GPUSHARE_OK) return;
  std::fprintf(stderr, "%s: %s: %s\n", what, gpushare_status_name(status),
               gpushare_last_error_message());
  std::exit(1);
}

int64_t PageFaults() {
  rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return usage.ru_minflt;
}

// Times and page faults of calls. `first_us` is the process's first, whatever calls the benchmark
// repeats.
class Calls {
 public:
  explicit Calls(double& first_us) : first_us_(first_us) {}
  template <class Call>
  void Measure(benchmark::State& state, const Call& call) {
    const int64_t faults = PageFaults();
    const Clock::time_point start = Clock::now();
    call();
    const std::chrono::duration<double> took = Clock::now() - start;
    state.SetIterationTime(took.count());
    times_us_.push_back(took.count() * 1e6);
    if (first_us_ == 0) first_us_ = times_us_.front();
    faults_.push_back(PageFaults() - faults);
  }
  void Report(benchmark::State& state) const {
    state.counters["first_us"] = first_us_;
    state.counters["p50_us"] = gpushare::benchmarks::Median(times_us_);
    state.counters["least_us"] = gpushare::benchmarks::Quantile(times_us_, 0.0);
    state.counters["page_faults"] = static_cast<double>(gpushare::benchmarks::Median(faults_));
  }

 private:
  double& first_us_;
  std::vector<double> times_us_;
  std::vector<int64_t> faults_;
};

gpushare_runtime* NewRuntime() {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  gpushare_runtime* runtime = nullptr;
  Check(gpushare_runtime_create(&options, &runtime), "runtime_create");
  return runtime;
}

void CreateRuntime(benchmark::State& state) {
  static double first_us = 0;
  Calls calls(first_us);
  for (auto _ : state) {
    gpushare_runtime* runtime = nullptr;
    calls.Measure(state, [&] { runtime = NewRuntime(); });
    Check(gpushare_runtime_release(runtime), "runtime_release");
  }
  calls.Report(state);
}
BENCHMARK(CreateRuntime)->UseManualTime()->Unit(benchmark::kMicrosecond);

void CreateApp(benchmark::State& state) {
  static double first_us = 0;
  Calls calls(first_us);
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.name = "app";
  options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  for (auto _ : state) {
    gpushare_runtime* const runtime = NewRuntime();  // so that the app's slot is new too
    gpushare_app* app = nullptr;
    calls.Measure(state,
                  [&] { Check(gpushare_app_create(runtime, &options, &app), "app_create"); });
    Check(gpushare_app_release(app), "app_release");
    Check(gpushare_runtime_release(runtime), "runtime_release");
  }
  calls.Report(state);
}
BENCHMARK(CreateApp)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(500);

void StartTrace(benchmark::State& state) {
  static double first_us = 0;
  Calls calls(first_us);
  gpushare_runtime* const runtime = NewRuntime();
  gpushare_trace_options options = GPUSHARE_TRACE_OPTIONS_INIT;
  options.event_log_path = "/dev/null";
  for (auto _ : state) {
    calls.Measure(state, [&] { Check(gpushare_trace_start(runtime, &options), "trace_start"); });
    gpushare_trace_stop(runtime, nullptr);  // nothing can be renamed to /dev/null
  }
  calls.Report(state);
  Check(gpushare_runtime_release(runtime), "runtime_release");
}
BENCHMARK(StartTrace)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
