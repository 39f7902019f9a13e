// Runs kernels on one SM, cycle by cycle.
//
//   SimulationOptions options;
//   options.machine = TitanV();
//   options.policy = WarpPolicy::kGto;
//   auto result = Simulate(options, {{.program = &first, .resident_blocks = 4},
//                                    {.program = &second, .resident_blocks = 4, .at_cycle = 100}});
//
// Flow of a cycle: blocks are placed, then each scheduler wakes its warps, finds those whose unit
// is free, and its issue unit picks one. An instruction's completion is known when it issues.
// Cycles in which nothing can issue are skipped. Equal inputs give equal results: nothing reads a
// clock or an address. Memory is bounded by the machine, time by cycles_max. Threads: any, one call
// each.

#ifndef GPUSHARE_SRC_SIM_WARP_SIMULATION_H_
#define GPUSHARE_SRC_SIM_WARP_SIMULATION_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/sim/warp/records.h"

namespace gpushare::sim::warp {

// Errors: INVALID_ARGUMENT for a machine, program or launch out of its limits, and for rt-paws with
// more than two priorities; RESOURCE_EXHAUSTED where kernels have not ended after cycles_max.
absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options,
                                          absl::Span<const KernelLaunch> launches);

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_SIMULATION_H_
