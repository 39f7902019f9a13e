#include "tests/faults/runs/run_plan.h"

#include <cstdio>
#include <iterator>

namespace gpushare::fault_runs {
namespace {

// `probability_max` keeps the rare faults rare: a lost device ends a run.
struct FaultKind {
  const char* name;
  double probability_max;
};
constexpr FaultKind kKinds[] = {
    {"launch_error", 0.1},          {"launch_failure", 0.1},      {"hang", 0.02},
    {"device_lost", 0.002},         {"place_out_of_memory", 0.1}, {"lane_out_of_memory", 0.1},
    {"kernel_out_of_memory", 0.1},  {"slow_copy", 0.5},           {"dropped_completion", 0.02},
    {"duplicated_completion", 0.1}, {"blocked_eviction", 0.3},    {"misprediction", 1.0},
};

constexpr const char* kPolicies[] = {"adaptive",
                                     "adaptive:evict",
                                     "adaptive:elastic",
                                     "adaptive:partition",
                                     "smguard",
                                     "smguard:packed",
                                     "baymax",
                                     "priority",
                                     "fifo",
                                     "bare"};

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

void Add(std::string& faults, const std::string& name, const std::string& value) {
  if (!faults.empty()) faults += ',';
  faults += name + "=" + value;
}

// At the nth call, or at each call with a probability.
std::string DrawTrigger(Random& random, double probability_max) {
  if (random.Chance(0.5)) return std::to_string(1 + random.Below(60));
  return "p" + Number(random.Between(0, probability_max));
}

void DrawFactors(Random& random, std::string& faults) {
  if (faults.find("slow_copy") != std::string::npos) {
    Add(faults, "slow_copy_factor", Number(random.Between(1, 50)));
  }
  if (faults.find("misprediction") != std::string::npos) {
    const double factors[] = {0.1, 0.5, 2, 10, random.Between(0.1, 10), random.Between(10, 100)};
    Add(faults, "misprediction_factor", Number(factors[random.Below(std::ssize(factors))]));
  }
}

// Ahead by 5 s at most, or back by any time that has passed.
bool DrawClockJump(Random& random, std::string& faults) {
  if (!random.Chance(0.2)) return false;
  Add(faults, "clock_jump_at_ns", std::to_string(random.Below(20 * kMs)));
  const int64_t jump_ns = random.Chance(0.5) ? random.Below(5 * kS) : -random.Below(20 * kMs);
  Add(faults, "clock_jump_ns", std::to_string(jump_ns));
  return true;
}

}  // namespace

RunPlan DrawPlan(Random& random) {
  RunPlan plan;
  for (const FaultKind& kind : kKinds) {
    if (random.Chance(0.25)) Add(plan.faults, kind.name, DrawTrigger(random, kind.probability_max));
  }
  DrawFactors(random, plan.faults);
  plan.clock_jumps = DrawClockJump(random, plan.faults);
  if (random.Chance(0.12)) {
    Add(plan.faults, "device_lost_at_ns", std::to_string(1 + random.Below(40 * kMs)));
  }
  plan.policy = kPolicies[random.Below(std::ssize(kPolicies))];
  plan.tier = random.Chance(0.2) ? "block" : "kernel";
  plan.splits_max = random.Chance(0.2) ? -1 : static_cast<int32_t>(random.Below(17));
  plan.be_return_hysteresis_ns = random.Chance(0.7) ? 0 : random.Below(200 * kUs) - 1;
  plan.actions = static_cast<int>(20 + random.Below(120));
  return plan;
}

gpushare_runtime_options OptionsOf(const RunPlan& plan, const char* profile_path, uint64_t seed) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.device = "sim";
  options.drive = GPUSHARE_DRIVE_POLL;
  options.policy = plan.policy;
  options.profile_path = profile_path;
  options.sim_tier = plan.tier;
  options.sim_faults = plan.faults.c_str();
  options.seed = seed;
  options.splits_max = plan.splits_max;
  options.be_return_hysteresis_ns = plan.be_return_hysteresis_ns;
  options.hang_floor_ns = 50 * kMs;
  options.hang_factor = 3;
  return options;
}

std::string Describe(const RunPlan& plan) {
  return std::string(plan.policy) + ", tier " + plan.tier + ", splits_max " +
         std::to_string(plan.splits_max) + ", be_return_hysteresis_ns " +
         std::to_string(plan.be_return_hysteresis_ns) + ", " + std::to_string(plan.actions) +
         " actions, faults '" + plan.faults + "'";
}

}  // namespace gpushare::fault_runs
