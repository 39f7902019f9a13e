// What the experiments share: names of policies, and runs of one kernel and of two.

#ifndef GPUSHARE_BENCHMARKS_WARP_RUNS_H_
#define GPUSHARE_BENCHMARKS_WARP_RUNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/sim/warp/simulation.h"

namespace gpushare::warp_experiments {

struct Setup {
  sim::warp::Machine machine;
  sim::warp::WarpPolicy policy = sim::warp::WarpPolicy::kLrr;
  sim::warp::IssueRules rules;
  uint64_t seed = 1;
};

struct Policy {
  std::string name;
  sim::warp::WarpPolicy policy = sim::warp::WarpPolicy::kLrr;
};
// lrr, gto, rt-paws.
const std::vector<Policy>& Policies();

// Throws Failure with the simulator's sentence.
sim::warp::SimulationResult Run(const Setup& setup,
                                const std::vector<sim::warp::KernelLaunch>& launches);

// From the launch to the last completion.
int64_t ResponseCycles(const sim::warp::KernelResult& kernel);

// Share of the issue slots that were used.
double IssueShare(const sim::warp::SimulationResult& result);

}  // namespace gpushare::warp_experiments

#endif  // GPUSHARE_BENCHMARKS_WARP_RUNS_H_
