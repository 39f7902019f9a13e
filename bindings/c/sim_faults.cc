// The text form of the simulated device's faults. Threads: any; pure.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bindings/c/devices.h"

namespace gpushare::abi {
namespace {

struct TriggerName {
  absl::string_view name;
  sim::FaultTrigger sim::FaultPlan::*field;
};
constexpr TriggerName kTriggers[] = {
    {"launch_error", &sim::FaultPlan::launch_error},
    {"launch_failure", &sim::FaultPlan::launch_failure},
    {"hang", &sim::FaultPlan::hang},
    {"device_lost", &sim::FaultPlan::device_lost},
    {"place_out_of_memory", &sim::FaultPlan::place_out_of_memory},
    {"lane_out_of_memory", &sim::FaultPlan::lane_out_of_memory},
    {"kernel_out_of_memory", &sim::FaultPlan::kernel_out_of_memory},
    {"slow_copy", &sim::FaultPlan::slow_copy},
    {"dropped_completion", &sim::FaultPlan::dropped_completion},
    {"duplicated_completion", &sim::FaultPlan::duplicated_completion},
    {"blocked_eviction", &sim::FaultPlan::blocked_eviction},
    {"misprediction", &sim::FaultPlan::misprediction},
};
struct FactorName {
  absl::string_view name;
  double sim::FaultPlan::*field;
  double least;
};
constexpr FactorName kFactors[] = {
    {"slow_copy_factor", &sim::FaultPlan::slow_copy_factor, 1},
    {"misprediction_factor", &sim::FaultPlan::misprediction_factor, 0.001},
};
struct TimeName {
  absl::string_view name;
  int64_t sim::FaultPlan::*field;
  int64_t least;
};
constexpr int64_t kHourNs = int64_t{3600} * 1000 * 1000 * 1000;
constexpr TimeName kTimes[] = {
    {"device_lost_at_ns", &sim::FaultPlan::device_lost_at_ns, 0},
    {"clock_jump_at_ns", &sim::FaultPlan::clock_jump_at_ns, 0},
    {"clock_jump_ns", &sim::FaultPlan::clock_jump_ns, -kHourNs},
};

// Enough to name every fault once; bounds the text.
constexpr size_t kFaultsMax = 32;
constexpr double kFactorMax = 1e6;

absl::Status BadValue(absl::string_view entry, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("The fault '", entry, "' does not have ", expected, " as its value."));
}

absl::Status Apply(absl::string_view entry, sim::FaultPlan& plan) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(entry, absl::MaxSplits('=', 1));
  const absl::string_view name = parts.first;
  absl::string_view value = parts.second;
  for (const TriggerName& trigger : kTriggers) {
    if (trigger.name != name) continue;
    sim::FaultTrigger& target = plan.*trigger.field;
    if (!value.empty() && value[0] == 'p') {
      value.remove_prefix(1);
      if (absl::SimpleAtod(value, &target.probability) && target.probability >= 0 &&
          target.probability <= 1) {
        return absl::OkStatus();
      }
      return BadValue(entry, "a probability from p0 to p1");
    }
    if (absl::SimpleAtoi(value, &target.nth) && target.nth >= 1) return absl::OkStatus();
    return BadValue(entry, "a call number from 1 or a probability from p0 to p1");
  }
  for (const FactorName& factor : kFactors) {
    if (factor.name != name) continue;
    double& target = plan.*factor.field;
    if (absl::SimpleAtod(value, &target) && target >= factor.least && target <= kFactorMax) {
      return absl::OkStatus();
    }
    return BadValue(entry, absl::StrCat("a factor from ", factor.least, " to 1000000"));
  }
  for (const TimeName& time : kTimes) {
    if (time.name != name) continue;
    int64_t& target = plan.*time.field;
    if (absl::SimpleAtoi(value, &target) && target >= time.least) return absl::OkStatus();
    return BadValue(entry, absl::StrCat("nanoseconds from ", time.least));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("The fault '", name, "' is not one that the simulated device knows."));
}

}  // namespace

absl::StatusOr<sim::FaultPlan> ParseFaults(absl::string_view text) {
  sim::FaultPlan plan;
  if (text.empty()) return plan;
  const std::vector<absl::string_view> entries = absl::StrSplit(text, ',');
  if (entries.size() > kFaultsMax) {
    return absl::InvalidArgumentError(absl::StrCat("sim_faults has ", entries.size(),
                                                   " entries, and the limit is ", kFaultsMax, "."));
  }
  for (const absl::string_view entry : entries) {
    if (absl::Status status = Apply(entry, plan); !status.ok()) return status;
  }
  return plan;
}

}  // namespace gpushare::abi
