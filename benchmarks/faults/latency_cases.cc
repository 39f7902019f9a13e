// What may not happen to latency and progress while something is wrong.

#include <atomic>
#include <chrono>
#include <thread>

#include "benchmarks/faults/cases.h"
#include "benchmarks/faults/gpu_app.h"
#include "benchmarks/harness/quantiles.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kQueries = 1000;
constexpr double kPeriodMs = 2;  // of queries of 1 ms: load 0.5

// Limits of cases that run for seconds only; the promise of 5 % is measured by `colocate`.
constexpr double kFloodRatioMax = 1.25;
constexpr double kLcMaxMs = 50;

double Largest(const std::vector<double>& values) {
  return values.empty() ? 0 : Quantile(values, 1);
}

// Submits until the app is full, again and again, from several threads.
class Flood {
 public:
  Flood(GpuApp& app, const TaskOptions& task, int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &app, task] {
        while (!stop_) {
          if (gpushare_submit_be(app.be.get(), &task, nullptr) == GPUSHARE_OK) {
            ++accepted_;
          } else {
            ++refused_;
          }
        }
      });
    }
  }
  ~Flood() { Stop(); }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int64_t accepted() const { return accepted_; }
  int64_t refused() const { return refused_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> accepted_{0};
  std::atomic<int64_t> refused_{0};
  std::vector<std::thread> threads_;
};

TaskOptions FilledBe(soak::Task& task) {
  TaskOptions options;
  const std::string error = task.Fill(options);
  Expect(error.empty(), error);
  options.detached = 1;
  return options;
}

Json FloodOfBe() {
  GpuApp app;
  app.ExpectHealthy();
  const std::unique_ptr<soak::Task> be = app.MakeBe(2);
  app.RunBe(*be);
  const std::vector<double> alone = app.RunQueries(kQueries, kPeriodMs);
  Flood flood(app, FilledBe(*be), 4);
  app.RunQueries(kQueries / 4, kPeriodMs);  // while the queue fills
  const std::vector<double> flooded = app.RunQueries(kQueries, kPeriodMs);
  flood.Stop();
  const double ratio = Quantile(flooded, 0.99) / Quantile(alone, 0.99);
  Json figures = {{"lc_p99_alone_ms", Rounded(Quantile(alone, 0.99), 4)},
                  {"lc_p99_flooded_ms", Rounded(Quantile(flooded, 0.99), 4)},
                  {"ratio", Rounded(ratio, 3)},
                  {"lc_max_ms", Rounded(Largest(flooded), 3)},
                  {"be_accepted", flood.accepted()},
                  {"be_refused", flood.refused()}};
  Expect(ratio <= kFloodRatioMax, "LC's p99 grew too much: " + figures.dump());
  Require(app.runtime.Drain(app.NowNs() + kPatienceNs));
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return figures;
}

// Evictions and LC launches race; one that is lost shows as a query that waits for a BE task.
Json LostEvictions() {
  GpuApp app;
  app.ExpectHealthy();
  BeLoop be(app, 100);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::vector<double> latencies = app.RunQueries(1500, 1.5);
  const int tasks = be.Stop();
  const RuntimeStats stats = app.Stats();
  Json figures = {
      {"evictions", stats.evictions},
      {"blocked", stats.evictions_blocked},
      {"eviction_p99_us", Rounded(static_cast<double>(stats.eviction_latency.p99_ns) / 1000, 1)},
      {"lc_p99_ms", Rounded(Quantile(latencies, 0.99), 3)},
      {"lc_max_ms", Rounded(Largest(latencies), 3)},
      {"be_tasks", tasks}};
  Expect(Largest(latencies) < kLcMaxMs, "A query waited for a BE task: " + figures.dump());
  app.ShutdownMs(2'000 * kMs);
  return figures;
}

// An LC task that waits for a BE ticket, behind other BE work.
Json Inversion() {
  GpuApp app;
  app.ExpectHealthy();
  const std::unique_ptr<soak::Task> be = app.MakeBe(5);
  TaskOptions task = FilledBe(*be);
  for (int i = 0; i < 20; ++i) Require(app.be.SubmitBe(task).status());
  task.detached = 0;
  const Ticket awaited = Take(app.be.SubmitBe(task));
  const Kernel kernel = app.WaitKernel("dependant", 100'000);
  const WaitParams wait = {.wait_ns = 100'000};
  TaskOptions dependant = GpuApp::WaitTask(kernel, wait, 132);
  const gpushare_ticket waits[] = {awaited.get()};
  dependant.wait_tickets = waits;
  dependant.wait_ticket_count = 1;
  const CompletionRecord record = app.Finish(Take(app.lc.SubmitLc(dependant)));
  Expect(record.verdict == GPUSHARE_VERDICT_OK,
         std::string("The dependant ends ") + gpushare_verdict_name(record.verdict) + ".");
  app.ShutdownMs(2'000 * kMs);
  return {{"be_ahead_ms", 105},
          {"dependant_ms",
           Rounded(static_cast<double>(record.complete_ns - record.submit_ns) / kMs, 1)}};
}

// BE beside a steady LC load makes progress.
Json Starvation() {
  GpuApp app;
  app.ExpectHealthy();
  BeLoop be(app, 2);
  app.RunQueries(kQueries, kPeriodMs);
  const int tasks = be.Stop();
  Expect(tasks > 0, "BE did nothing in two seconds beside LC at half load.");
  app.ShutdownMs(2'000 * kMs);
  return {{"be_tasks", tasks}, {"be_ms_a_task_alone", 2}};
}

// The stated solo time is wrong by ten, either way. Nothing is taken for hung.
Json Mispredictions(double factor) {
  GpuApp app;
  app.ExpectHealthy();
  const auto stated_ns = static_cast<int64_t>(200'000 * factor);
  const Kernel lc = app.WaitKernel("lc_stated_wrong", stated_ns);
  const Kernel be = app.WaitKernel("be_stated_wrong", stated_ns);
  const WaitParams wait = {.wait_ns = 200'000};
  BeLoop loop(app, 2);
  std::vector<double> latencies;
  for (int i = 0; i < 300; ++i) {
    const CompletionRecord record =
        app.Finish(Take(app.lc.SubmitLc(GpuApp::WaitTask(lc, wait, 132))));
    Expect(record.verdict == GPUSHARE_VERDICT_OK,
           std::string("A query ends ") + gpushare_verdict_name(record.verdict) + ".");
    latencies.push_back(static_cast<double>(record.complete_ns - record.submit_ns) / kMs);
  }
  const int tasks = loop.Stop();
  Require(app.runtime.SetPolicy("priority"));  // launches work that cannot be evicted at once
  const CompletionRecord record = app.Finish(Take(app.be.SubmitBe(GpuApp::WaitTask(be, wait, 8))));
  Expect(record.verdict == GPUSHARE_VERDICT_OK,
         std::string("The BE task ends ") + gpushare_verdict_name(record.verdict) + ".");
  Expect(app.Stats().hung == 0, "Healthy work was taken for hung.");
  app.ShutdownMs(2'000 * kMs);
  return {{"stated_us", stated_ns / 1000},
          {"lc_p50_ms", Rounded(Quantile(latencies, 0.5), 3)},
          {"lc_p99_ms", Rounded(Quantile(latencies, 0.99), 3)},
          {"be_tasks", tasks}};
}

Json StatedTooShort() { return Mispredictions(0.1); }
Json StatedTooLong() { return Mispredictions(10); }

}  // namespace

std::vector<FaultCase> LatencyCases() {
  static constexpr char kStated[] = "work goes on, nothing is taken for hung";
  return {
      {"flood_of_be", "LC's p99 stays, BE is refused where its app is full", 30, FloodOfBe},
      {"lost_evictions", "no query waits for a BE task", 30, LostEvictions},
      {"priority_inversion", "the dependant runs once the BE work before it is done", 20,
       Inversion},
      {"starvation", "BE makes progress beside LC at half load", 20, Starvation},
      {"predicted_too_short", kStated, 20, StatedTooShort},
      {"predicted_too_long", kStated, 20, StatedTooLong},
  };
}

}  // namespace gpushare::benchmarks
