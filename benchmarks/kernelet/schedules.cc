#include "benchmarks/kernelet/schedules.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernelet/pair_schedule.h"

namespace gpushare::kernelet {

namespace {

Scheduler NamedPolicy(const std::string& name) {
  return [policy = PolicyOf(name)](const Runtime& runtime) {
    benchmarks::Require(runtime.SetPolicy(policy));
  };
}

int64_t TotalNsOf(const std::string& name, const Mix& mix, const Load& load, const Oracle* oracle,
                  const RigOptions& options) {
  if (name != kOpt) return TotalNs(mix, load, NamedPolicy(name), options);
  if (oracle == nullptr) benchmarks::Fail("OPT needs an oracle.");
  PairSchedule best(PairSchedule::Choice::kBest, oracle->Rated());
  return TotalNs(mix, load, best.For(mix.kernels), options);
}

// Random schedules `next`, next + 1, ... until all are done or one fails.
void RunRandom(const Mix& mix, const Load& load, const RigOptions& options,
               const std::vector<RatedRatio>& ratios, std::vector<int64_t>& total_ns,
               std::atomic<size_t>& next) {
  while (true) {
    const size_t run = next.fetch_add(1);
    if (run >= total_ns.size()) return;
    PairSchedule random(PairSchedule::Choice::kRandom, ratios, run + 1);
    total_ns[run] = TotalNs(mix, load, random.For(mix.kernels), options);
  }
}

std::vector<int64_t> RandomTotals(const Mix& mix, const Load& load, int runs, int threads,
                                  const RigOptions& options) {
  std::vector<int64_t> total_ns(static_cast<size_t>(runs));
  if (runs == 0) return total_ns;
  const std::vector<RatedRatio> ratios = Unrated(SizesOf(mix.kernels, options));
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      try {
        RunRandom(mix, load, options, ratios, total_ns, next);
      } catch (...) {
        next = total_ns.size();
        const std::lock_guard<std::mutex> lock(mutex);
        failure = std::current_exception();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  if (failure != nullptr) std::rethrow_exception(failure);
  std::sort(total_ns.begin(), total_ns.end());
  return total_ns;
}

}  // namespace

std::vector<std::string> SchedulerNames() { return {kBase, kKernelet, kOpt, kAdaptive, kApart}; }

const char* PolicyOf(const std::string& scheduler) {
  if (scheduler == kBase) return "kernelet:base";
  if (scheduler == kAdaptive) return "adaptive";
  if (scheduler == kApart) return "adaptive:apart";
  return scheduler == kOpt ? "kernelet's algorithm with measured pairs" : "kernelet";
}

int64_t TotalNs(const Mix& mix, const Load& load, const Scheduler& scheduler,
                const RigOptions& options) {
  Rig rig(mix.kernels, scheduler, options);
  std::vector<TaskOptions> tasks;  // of each kernel
  for (size_t kernel = 0; kernel < mix.kernels.size(); ++kernel) {
    tasks.push_back(rig.TaskOf(kernel, rig.BlocksFor(kernel, load.solo_ns)));
  }
  const std::vector<Arrival> arrivals = ArrivalsOf(mix, load);
  const int64_t start_ns = rig.runtime().NowNs() - arrivals.front().at_ns;
  std::vector<Ticket> tickets;
  for (const Arrival& arrival : arrivals) {
    rig.WaitUntil(start_ns + arrival.at_ns);
    tickets.push_back(rig.Submit(arrival.kernel, tasks[arrival.kernel]));
  }
  benchmarks::Require(rig.runtime().Drain());
  int64_t end_ns = 0;
  for (size_t i = 0; i < tickets.size(); ++i) {
    const CompletionRecord record = benchmarks::Take(tickets[i].Record());
    const int64_t blocks = tasks[arrivals[i].kernel].block_tasks;
    if (record.verdict != GPUSHARE_VERDICT_OK || record.block_tasks != blocks) {
      benchmarks::Fail("An instance of " + mix.kernels[arrivals[i].kernel] + " ran " +
                       std::to_string(record.block_tasks) + " of " + std::to_string(blocks) +
                       " block tasks.");
    }
    end_ns = std::max(end_ns, record.end_ns);
  }
  for (size_t kernel = 0; kernel < tasks.size(); ++kernel) rig.Verify(kernel, tasks[kernel]);
  return end_ns - (start_ns + arrivals.front().at_ns);
}

int64_t Comparison::MedianNs(const std::string& scheduler) const {
  return benchmarks::Median(total_ns.at(scheduler));
}

Comparison Compare(const Mix& mix, const Load& load, const Contest& contest, const Oracle* oracle,
                   const RigOptions& options) {
  Comparison comparison;
  const size_t count = contest.schedulers.size();
  for (size_t round = 0; round < static_cast<size_t>(contest.rounds); ++round) {
    for (size_t turn = 0; turn < count; ++turn) {
      const std::string& name = contest.schedulers[(round + turn) % count];
      const int64_t ns = TotalNsOf(name, mix, load, oracle, options);
      comparison.total_ns[name].push_back(ns);
      if (options.platform->simulated()) continue;
      std::fprintf(stderr, "%s, round %zu, %s: %.1f ms\n", mix.name.c_str(), round + 1,
                   name.c_str(), static_cast<double>(ns) / 1e6);
    }
  }
  if (contest.random_runs == 0) return comparison;
  Load beside = load;
  if (contest.random_instances > 0) beside.instances = contest.random_instances;
  comparison.kernelet_beside_random_ns = TotalNs(mix, beside, NamedPolicy(kKernelet), options);
  comparison.random_ns = RandomTotals(mix, beside, contest.random_runs, contest.threads, options);
  return comparison;
}

int64_t RandomNs(const Mix& mix, const Load& load, uint64_t seed, const RigOptions& options) {
  PairSchedule random(PairSchedule::Choice::kRandom, Unrated(SizesOf(mix.kernels, options)), seed);
  return TotalNs(mix, load, random.For(mix.kernels), options);
}

}  // namespace gpushare::kernelet
