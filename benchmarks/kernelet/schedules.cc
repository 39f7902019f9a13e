#include "benchmarks/kernelet/schedules.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernelet/random_pairs.h"

namespace gpushare::kernelet {

namespace {

Scheduler Policy(const char* name) {
  return [name](const Runtime& runtime) { benchmarks::Require(runtime.SetPolicy(name)); };
}

// Random schedules `next`, next + 1, ... until all are done or one fails.
void RunRandom(const Mix& mix, const Load& load, const RigOptions& options,
               std::vector<int64_t>& total_ns, std::atomic<size_t>& next) {
  while (true) {
    const size_t run = next.fetch_add(1);
    if (run >= total_ns.size()) return;
    RandomPairs random(run + 1);
    total_ns[run] = TotalNs(mix, load, random.Policy(), options);
  }
}

std::vector<int64_t> RandomTotals(const Mix& mix, const Load& load, int runs, int threads,
                                  const RigOptions& options) {
  std::vector<int64_t> total_ns(static_cast<size_t>(runs));
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      try {
        RunRandom(mix, load, options, total_ns, next);
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

int64_t TotalNs(const Mix& mix, const Load& load, const Scheduler& scheduler,
                const RigOptions& options) {
  Rig rig(mix.kernels, scheduler, options);
  const std::vector<Arrival> arrivals = ArrivalsOf(mix, load);
  const int64_t start_ns = rig.runtime().NowNs() - arrivals.front().at_ns;
  std::vector<Ticket> tickets;
  std::vector<int64_t> blocks;
  for (const Arrival& arrival : arrivals) {
    benchmarks::Require(rig.runtime().PollUntil(start_ns + arrival.at_ns));
    blocks.push_back(rig.BlocksFor(arrival.kernel, load.solo_ns));
    tickets.push_back(rig.Submit(arrival.kernel, blocks.back()));
  }
  benchmarks::Require(rig.runtime().Drain());
  int64_t end_ns = 0;
  for (size_t i = 0; i < tickets.size(); ++i) {
    const CompletionRecord record = benchmarks::Take(tickets[i].Record());
    if (record.verdict != GPUSHARE_VERDICT_OK || record.block_tasks != blocks[i]) {
      benchmarks::Fail("An instance of " + mix.kernels[arrivals[i].kernel] + " ran " +
                       std::to_string(record.block_tasks) + " of " + std::to_string(blocks[i]) +
                       " block tasks.");
    }
    end_ns = std::max(end_ns, record.end_ns);
  }
  return end_ns - (start_ns + arrivals.front().at_ns);
}

Comparison Compare(const Mix& mix, const Load& load, const Oracle& oracle, int runs, int threads,
                   const RigOptions& options) {
  Comparison comparison;
  comparison.base_ns = TotalNs(mix, load, Policy("kernelet:base"), options);
  comparison.kernelet_ns = TotalNs(mix, load, Policy("kernelet"), options);
  comparison.adaptive_ns = TotalNs(mix, load, Policy("adaptive"), options);
  comparison.opt_ns = TotalNs(mix, load, oracle.Opt(), options);
  if (oracle.unknown() > 0) benchmarks::Fail("OPT was asked for a pair that was not executed.");
  comparison.random_ns = RandomTotals(mix, load, runs, threads, options);
  return comparison;
}

}  // namespace gpushare::kernelet
