#include "src/models/markov/chain.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/models/markov/stationary.h"

namespace gpushare::models::markov {
namespace {

using Kernels = std::array<ResidentKernel, kKernelsMax>;

// The kernels of one chain and the place of each one's state in a joint state.
struct Space {
  Kernels kernels = {};
  size_t count = 0;
  std::array<size_t, kKernelsMax> sizes = {};
  size_t states = 1;
};

int64_t CountJointStates(std::span<const ResidentKernel> kernels) {
  int64_t states = 1;
  for (const ResidentKernel& kernel : kernels) {
    states = std::min<int64_t>(states * CountStates(kernel), int64_t{1} << 40);
  }
  return states;
}

Space MakeSpace(std::span<const ResidentKernel> kernels, int32_t states_max,
                ChainWorkspace& workspace) {
  Space space;
  space.count = kernels.size();
  std::copy(kernels.begin(), kernels.end(), space.kernels.begin());
  BoundStates(std::span(space.kernels).first(space.count), states_max);
  for (size_t k = 0; k < space.count; ++k) {
    space.sizes[k] = static_cast<size_t>(CountStates(space.kernels[k]));
    ListStates(space.kernels[k], std::span(workspace.states[k]).first(space.sizes[k]));
    space.states *= space.sizes[k];
  }
  return space;
}

// One joint state: each kernel's stalled units, the ready warps and the requests under way.
struct Joint {
  std::array<Stalled, kKernelsMax> stalled = {};
  std::array<double, kKernelsMax> ready_warps = {};
  double requests = 0;
  double round_cycles = 0;  // R: every ready warp issues once; one idle cycle if none is ready
};

Joint Describe(const Space& space, const ChainWorkspace& workspace, size_t state) {
  Joint joint;
  for (size_t k = space.count; k-- > 0;) {
    const ResidentKernel& kernel = space.kernels[k];
    const Stalled stalled = workspace.states[k][state % space.sizes[k]];
    state /= space.sizes[k];
    joint.stalled[k] = stalled;
    joint.ready_warps[k] =
        (kernel.units - stalled.coalesced - stalled.uncoalesced) * kernel.warps_per_unit;
    joint.round_cycles += joint.ready_warps[k];
    joint.requests += kernel.warps_per_unit *
                      (stalled.coalesced + stalled.uncoalesced * kernel.uncoalesced_requests);
  }
  joint.round_cycles = std::max(1.0, joint.round_cycles);
  return joint;
}

// P(idle -> ready) = min(1, R / L). An uncoalesced access waits for each of its requests.
Returns ReturnsOf(const VirtualSm& sm, const ResidentKernel& kernel, const Joint& joint) {
  const double coalesced = MemoryLatency(sm, joint.requests);
  const double uncoalesced = coalesced + (kernel.uncoalesced_requests - 1) / sm.requests_per_cycle;
  return {std::min(1.0, joint.round_cycles / coalesced),
          std::min(1.0, joint.round_cycles / uncoalesced)};
}

// Given the state, the kernels move independently: the joint row is the product of their rows.
void FillJointRow(const VirtualSm& sm, const Space& space, const Joint& joint, double* row,
                  ChainWorkspace& workspace) {
  row[0] = 1;
  size_t filled = 1;
  for (size_t k = 0; k < space.count; ++k) {
    const ResidentKernel& kernel = space.kernels[k];
    const std::span<double> own = std::span(workspace.rows[k]).first(space.sizes[k]);
    FillRow(kernel, joint.stalled[k], ReturnsOf(sm, kernel, joint), workspace.counts, own);
    for (size_t before = filled; before-- > 0;) {
      const double probability = row[before];
      for (size_t i = own.size(); i-- > 0;) row[before * own.size() + i] = probability * own[i];
    }
    filled *= own.size();
  }
}

bool AreUsable(const VirtualSm& sm, std::span<const ResidentKernel> kernels, int32_t states_max) {
  return IsUsable(sm) && kernels.size() <= kKernelsMax && states_max >= 1 &&
         states_max <= kStatesMax &&
         std::all_of(kernels.begin(), kernels.end(),
                     [](const ResidentKernel& kernel) { return IsUsable(kernel); });
}

}  // namespace

void BoundStates(std::span<ResidentKernel> kernels, int32_t states_max) {
  while (CountJointStates(kernels) > states_max) {
    int32_t largest = 0;
    for (const ResidentKernel& kernel : kernels) largest = std::max(largest, CountStates(kernel));
    bool shrunk = false;
    for (ResidentKernel& kernel : kernels) {
      if (CountStates(kernel) != largest || kernel.units < 2) continue;
      const int32_t units = std::min<int32_t>(kernel.units - 1, kStatesMax);
      kernel.warps_per_unit *= static_cast<double>(kernel.units) / units;
      kernel.units = units;
      shrunk = true;
    }
    if (!shrunk) return;
  }
}

ChainIpc SolveChain(const VirtualSm& sm, std::span<const ResidentKernel> kernels,
                    int32_t states_max, ChainWorkspace& workspace) {
  ChainIpc result;
  if (!AreUsable(sm, kernels, states_max)) return result;
  const Space space = MakeSpace(kernels, states_max, workspace);
  if (space.states > kStatesMax) return result;
  const std::span<double> transitions =
      std::span(workspace.transitions).first(space.states * space.states);
  for (size_t state = 0; state < space.states; ++state) {
    FillJointRow(sm, space, Describe(space, workspace, state),
                 transitions.data() + state * space.states, workspace);
  }
  const std::span<double> steady = std::span(workspace.steady).first(space.states);
  if (!SolveStationary(transitions, steady)) return result;

  double cycles = 0;
  for (size_t state = 0; state < space.states; ++state) {
    const Joint joint = Describe(space, workspace, state);
    cycles += steady[state] * joint.round_cycles;
    for (size_t k = 0; k < space.count; ++k) {
      result.ipc[k] += steady[state] * joint.ready_warps[k];
    }
  }
  for (double& ipc : result.ipc) ipc *= sm.schedulers / cycles;
  result.known = true;
  result.states = static_cast<int32_t>(space.states);
  return result;
}

}  // namespace gpushare::models::markov
