// Rounds, queues and steady state; see pipe_chain.h.

#include "src/models/markov/pipes/pipe_chain.h"

#include <algorithm>
#include <cmath>

#include "src/models/markov/pipes/pipe_queue.h"
#include "src/models/markov/stationary.h"
#include "src/models/markov/warp_states.h"

namespace gpushare::models::markov {
namespace {

constexpr size_t kPair = 2;

// Both kernels of a chain; without a younger one its place has no units.
struct PipeSpace {
  std::array<PipeKernel, kPair> kernels = {};
  std::array<ResidentKernel, kPair> residents = {};
  std::array<size_t, kPair> sizes = {1, 1};
  size_t states = 1;
};

PipeSpace MakeSpace(std::span<const PipeResident> kernels) {
  PipeSpace space;
  for (size_t k = 0; k < kernels.size(); ++k) {
    space.kernels[k] = kernels[k].kernel;
    space.residents[k] = {.units = kernels[k].units,
                          .warps_per_unit = kernels[k].warps_per_unit,
                          .memory_share = kernels[k].kernel.stall_share};
  }
  BoundStates(space.residents, kPlannedStatesMax);
  for (size_t k = 0; k < kPair; ++k) {
    space.sizes[k] = static_cast<size_t>(space.residents[k].units) + 1;
    space.states *= space.sizes[k];
  }
  return space;
}

// One round from one joint state.
struct Round {
  std::array<int32_t, kPair> stalled = {};
  std::array<double, kPair> issue = {1, 1};  // instructions of one ready warp
  std::array<double, kPair> issued = {};     // of all warps
  double cycles = 1;
};

Round Describe(const PipeSpace& space, size_t state, const Arbitration& arbitration) {
  Round round;
  round.stalled = {static_cast<int32_t>(state / space.sizes[1]),
                   static_cast<int32_t>(state % space.sizes[1])};
  if (round.stalled[0] < space.residents[0].units) round.issue[1] = arbitration.younger_issue;
  double cycles = 0;
  for (size_t k = 0; k < kPair; ++k) {
    const ResidentKernel& resident = space.residents[k];
    round.issued[k] =
        (resident.units - round.stalled[k]) * resident.warps_per_unit * round.issue[k];
    cycles += round.issued[k] * space.kernels[k].issue_cycles;
  }
  round.cycles = std::max(1.0, cycles);
  return round;
}

// Cycles that a stall of each kernel lasts while `stalled` units are stalled.
std::array<double, kPair> StallCycles(const PipeSpace& space,
                                      const std::array<int32_t, kPair>& stalled,
                                      const Arbitration& arbitration) {
  std::array<double, kPair> latency = {space.kernels[0].latency_cycles,
                                       space.kernels[1].latency_cycles};
  for (size_t pipe = 0; pipe < kPipes; ++pipe) {
    std::array<PipeLoad, kPair> loads;
    for (size_t k = 0; k < kPair; ++k) {
      const PipeKernel& kernel = space.kernels[k];
      const double cycles = kernel.pipe_cycles[pipe];
      loads[k] = {.queued = stalled[k] * space.residents[k].warps_per_unit * cycles,
                  .elsewhere = std::max(0.0, kernel.latency_cycles - cycles),
                  .cycles = cycles};
    }
    const bool of_device = pipe >= static_cast<size_t>(Pipe::kL2);
    const std::array<double, kPair> slowdown =
        PipeSlowdowns(loads[0], loads[1], of_device ? 1 : arbitration.older_wait);
    for (size_t k = 0; k < kPair; ++k) {
      if (loads[k].cycles <= 0) continue;
      latency[k] = std::max(latency[k], loads[k].elsewhere + loads[k].cycles * slowdown[k]);
    }
  }
  return latency;
}

void FillRows(const PipeSpace& space, const Round& round, const Arbitration& arbitration,
              double* row, ChainWorkspace& workspace) {
  const std::array<double, kPair> latency = StallCycles(space, round.stalled, arbitration);
  std::array<std::span<double>, kPair> own;
  for (size_t k = 0; k < kPair; ++k) {
    own[k] = std::span(workspace.rows[k]).first(space.sizes[k]);
    ResidentKernel resident = space.residents[k];
    resident.memory_share *= round.issue[k];
    const double back = std::min(1.0, round.cycles / std::max(1.0, latency[k]));
    FillRow(resident, {round.stalled[k], 0}, {back, back}, workspace.counts, own[k]);
  }
  for (size_t i = 0; i < space.sizes[0]; ++i) {
    for (size_t j = 0; j < space.sizes[1]; ++j) *row++ = own[0][i] * own[1][j];
  }
}

bool AreUsable(int32_t schedulers, std::span<const PipeResident> kernels,
               const Arbitration& arbitration) {
  const auto is_part = [](double value) { return value > 0 && value <= 1; };
  return schedulers > 0 && !kernels.empty() && kernels.size() <= kPair &&
         is_part(arbitration.younger_issue) && is_part(arbitration.older_wait) &&
         std::all_of(kernels.begin(), kernels.end(), [](const PipeResident& resident) {
           return IsUsable(resident.kernel) && resident.units >= 0 &&
                  std::isfinite(resident.warps_per_unit) && resident.warps_per_unit > 0;
         });
}

}  // namespace

bool IsUsable(const PipeKernel& kernel) {
  return kernel.stall_share > 0 && kernel.stall_share <= 1 &&
         std::isfinite(kernel.latency_cycles) && kernel.latency_cycles >= 0 &&
         std::isfinite(kernel.issue_cycles) && kernel.issue_cycles >= 1 &&
         std::all_of(kernel.pipe_cycles.begin(), kernel.pipe_cycles.end(),
                     [](double cycles) { return std::isfinite(cycles) && cycles >= 0; });
}

ChainIpc SolvePipeChain(int32_t schedulers, std::span<const PipeResident> kernels,
                        const Arbitration& arbitration, ChainWorkspace& workspace) {
  ChainIpc result;
  if (!AreUsable(schedulers, kernels, arbitration)) return result;
  const PipeSpace space = MakeSpace(kernels);
  if (space.states > kPlannedStatesMax) return result;
  const std::span<double> transitions =
      std::span(workspace.transitions).first(space.states * space.states);
  for (size_t state = 0; state < space.states; ++state) {
    FillRows(space, Describe(space, state, arbitration), arbitration,
             transitions.data() + state * space.states, workspace);
  }
  const std::span<double> steady = std::span(workspace.steady).first(space.states);
  if (!SolveStationary(transitions, steady)) return result;

  double cycles = 0;
  for (size_t state = 0; state < space.states; ++state) {
    const Round round = Describe(space, state, arbitration);
    cycles += steady[state] * round.cycles;
    for (size_t k = 0; k < kPair; ++k) result.ipc[k] += steady[state] * round.issued[k];
  }
  for (double& ipc : result.ipc) ipc *= schedulers / cycles;
  result.known = true;
  result.states = static_cast<int32_t>(space.states);
  return result;
}

}  // namespace gpushare::models::markov
