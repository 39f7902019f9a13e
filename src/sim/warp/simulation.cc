#include "src/sim/warp/simulation.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/core/base/status.h"
#include "src/sim/warp/sm.h"

namespace gpushare::sim::warp {
namespace {

constexpr int64_t kLeastL1Bytes = 16 << 10;

absl::Status CheckLaunch(const Machine& machine, const KernelLaunch& launch) {
  if (launch.program == nullptr) {
    return absl::InvalidArgumentError("A launch has no program, and it needs one.");
  }
  GPUSHARE_RETURN_IF_ERROR(Check(*launch.program));
  if (launch.program->warps_per_block > machine.warps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A block of kernel '", launch.program->name, "' has ", launch.program->warps_per_block,
        " warps, and the SM holds ", machine.warps, "."));
  }
  if (launch.resident_blocks < 1 || launch.resident_blocks > machine.warps) {
    return absl::InvalidArgumentError(
        absl::StrCat("The resident blocks of kernel '", launch.program->name, "' are ",
                     launch.resident_blocks, ", and they must be in 1 to ", machine.warps, "."));
  }
  if (launch.at_cycle < 0 || launch.at_cycle > kMaxCycles) {
    return absl::InvalidArgumentError(absl::StrCat("Kernel '", launch.program->name,
                                                   "' is launched at cycle ", launch.at_cycle,
                                                   ", and this must be in 0 to ", kMaxCycles, "."));
  }
  if (launch.priority < 0 || launch.priority > kMaxPriority) {
    return absl::InvalidArgumentError(absl::StrCat("The priority of kernel '", launch.program->name,
                                                   "' is ", launch.priority,
                                                   ", and it must be in 0 to ", kMaxPriority, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckLaunches(const SimulationOptions& options,
                           absl::Span<const KernelLaunch> launches) {
  if (launches.empty() || launches.size() > kMaxLaunches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "There are ", launches.size(), " launches, and there must be 1 to ", kMaxLaunches, "."));
  }
  std::set<int64_t> priorities;
  for (const KernelLaunch& launch : launches) {
    GPUSHARE_RETURN_IF_ERROR(CheckLaunch(options.machine, launch));
    priorities.insert(launch.priority);
  }
  if (options.policy == WarpPolicy::kRtPaws && priorities.size() > kGroups) {
    return absl::InvalidArgumentError(absl::StrCat("The launches have ", priorities.size(),
                                                   " priorities, and rt-paws knows two groups."));
  }
  if (options.cycles_max < 1 || options.cycles_max > kMaxCycles) {
    return absl::InvalidArgumentError(
        absl::StrCat("The bound of the simulation is ", options.cycles_max,
                     " cycles, and it must be in 1 to ", kMaxCycles, "."));
  }
  return absl::OkStatus();
}

// What shared memory leaves of L1.
absl::StatusOr<int64_t> L1Bytes(const Machine& machine, absl::Span<const KernelLaunch> launches) {
  int64_t left = machine.l1_bytes;
  for (const KernelLaunch& launch : launches) {
    const int64_t blocks = std::min<int64_t>(launch.resident_blocks, launch.program->grid_blocks);
    left -= blocks * launch.program->shared_bytes;
  }
  if (left < kLeastL1Bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("The resident blocks' shared memory leaves ", left, " of ", machine.l1_bytes,
                     " bytes for L1, and L1 needs ", kLeastL1Bytes, "."));
  }
  return left;
}

}  // namespace

absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options,
                                          absl::Span<const KernelLaunch> launches) {
  GPUSHARE_RETURN_IF_ERROR(Check(options.machine));
  GPUSHARE_RETURN_IF_ERROR(CheckLaunches(options, launches));
  GPUSHARE_ASSIGN_OR_RETURN(const int64_t l1_bytes, L1Bytes(options.machine, launches));
  Sm sm(options, launches, l1_bytes);
  const int schedulers = options.machine.schedulers;
  int64_t cycle = 0;
  int64_t last_issue = 0;
  while (sm.HasWork()) {
    if (cycle >= options.cycles_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The kernels have not ended after ", options.cycles_max,
                       " cycles, the bound of this simulation. Raise it or shorten the loops."));
    }
    sm.PlaceBlocks(cycle);
    bool issued = false;
    // The load-store unit is taken by the first scheduler that asks, so they take turns.
    int scheduler = static_cast<int>(cycle % schedulers);
    for (int turn = 0; turn < schedulers; ++turn) {
      if (sm.Step(scheduler, cycle)) issued = true;
      if (++scheduler == schedulers) scheduler = 0;
    }
    if (issued) {
      last_issue = cycle++;
      continue;
    }
    const int64_t next = std::min(sm.NextCycle(cycle), options.cycles_max);
    sm.Idle(next - cycle - 1);
    cycle = next;
  }
  SimulationResult result = sm.result();
  result.cycles = last_issue + 1;
  result.slots = result.cycles * schedulers;
  result.memory = sm.memory_counts();
  return result;
}

}  // namespace gpushare::sim::warp
