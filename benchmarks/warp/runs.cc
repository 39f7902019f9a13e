#include "benchmarks/warp/runs.h"

#include "benchmarks/harness/failure.h"

namespace gpushare::warp_experiments {

using sim::warp::WarpPolicy;

const std::vector<Policy>& Policies() {
  static const std::vector<Policy> policies = {
      {"lrr", WarpPolicy::kLrr}, {"gto", WarpPolicy::kGto}, {"rt-paws", WarpPolicy::kRtPaws}};
  return policies;
}

sim::warp::SimulationResult Run(const Setup& setup,
                                const std::vector<sim::warp::KernelLaunch>& launches) {
  sim::warp::SimulationOptions options;
  options.machine = setup.machine;
  options.policy = setup.policy;
  options.rules = setup.rules;
  options.seed = setup.seed;
  return benchmarks::Take(sim::warp::Simulate(options, launches));
}

int64_t ResponseCycles(const sim::warp::KernelResult& kernel) {
  return kernel.end_cycle - kernel.start_cycle;
}

double IssueShare(const sim::warp::SimulationResult& result) {
  return static_cast<double>(result.instructions) / static_cast<double>(result.slots);
}

}  // namespace gpushare::warp_experiments
