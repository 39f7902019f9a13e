// What one seeded run is about: the faults of the simulated device, the policy, the options.
//
// Equal seeds give equal plans. Times are short, so that a hang is found within the run.

#ifndef GPUSHARE_TESTS_FAULTS_RUNS_RUN_PLAN_H_
#define GPUSHARE_TESTS_FAULTS_RUNS_RUN_PLAN_H_

#include <gpushare/gpushare.h>

#include <cstdint>
#include <string>

#include "benchmarks/harness/random.h"

namespace gpushare::fault_runs {

using benchmarks::Random;

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;
constexpr int64_t kS = 1000 * kMs;

struct RunPlan {
  std::string faults;  // sim_faults; empty: none
  const char* policy = nullptr;
  const char* tier = nullptr;
  int32_t splits_max = 0;
  int64_t be_return_hysteresis_ns = 0;
  int actions = 0;
  bool clock_jumps = false;  // deadlines and latencies of this run mean nothing
};

RunPlan DrawPlan(Random& random);

// Points into the plan and the path. `profile_path`: null for the built-in profile.
gpushare_runtime_options OptionsOf(const RunPlan& plan, const char* profile_path, uint64_t seed);

// One line.
std::string Describe(const RunPlan& plan);

}  // namespace gpushare::fault_runs

#endif  // GPUSHARE_TESTS_FAULTS_RUNS_RUN_PLAN_H_
