// The Markov chain of one to three kernels on a virtual SM, and the IPC of each.
//
// Kernelet 4.4: one kernel by eq. 2 to 4, two by eq. 5 to 7, three by the same product. A step of
// the chain is one round, in which each ready warp issues one instruction. Invariants: no IPC is
// negative, and their sum is at most the number of schedulers. Allocates nothing: the caller owns
// the workspace. Threads: one a workspace.
//
//   ChainWorkspace workspace;  // 141 KB: a member, not a local
//   ChainIpc ipc = SolveChain(sm, kernels, kStatesMax, workspace);

#ifndef GPUSHARE_SRC_MODELS_MARKOV_CHAIN_H_
#define GPUSHARE_SRC_MODELS_MARKOV_CHAIN_H_

#include <array>
#include <cstdint>
#include <span>

#include "src/models/markov/limits.h"
#include "src/models/markov/virtual_sm.h"
#include "src/models/markov/warp_states.h"

namespace gpushare::models::markov {

struct ChainWorkspace {
  std::array<double, size_t{kStatesMax}* kStatesMax> transitions = {};
  std::array<double, kStatesMax> steady = {};
  std::array<std::array<Stalled, kStatesMax>, kKernelsMax> states = {};
  std::array<std::array<double, kStatesMax>, kKernelsMax> rows = {};
  StalledCounts counts = {};
};

struct ChainIpc {
  bool known = false;  // false: an input is out of range
  int32_t states = 0;
  std::array<double, kKernelsMax> ipc = {};  // of the SM: the virtual SM's times its schedulers
};

// Joins warps into larger units until the product of the kernels' states is at most `states_max`.
// Kernels of the same number of states shrink together, so that their order does not matter.
void BoundStates(std::span<ResidentKernel> kernels, int32_t states_max);

// Solves the chain of `kernels`, at most kKernelsMax, after BoundStates to `states_max` (at most
// kStatesMax). A kernel without units has IPC 0.
ChainIpc SolveChain(const VirtualSm& sm, std::span<const ResidentKernel> kernels,
                    int32_t states_max, ChainWorkspace& workspace);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_CHAIN_H_
