// The Markov chain of one or two kernels that wait for the pipes of an SM and for memory, oldest
// kernel first. It stands beside the paper's chain (../chain.h), with inputs from a pre-run.
//
// Ours (docs/models.md, "Chain with pipes"). A unit is ready or stalled; a stall lasts L_k cycles,
// or longer where the stalled units of both kernels keep a pipe busy. Invariants: no IPC is
// negative, and their sum is at most the number of schedulers. Allocates nothing. Threads: one a
// workspace.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_CHAIN_H_
#define GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_CHAIN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/models/markov/chain.h"

namespace gpushare::models::markov {

// What the instructions of two kernels wait for. FMA is not here: its peak is that of issue.
enum class Pipe : uint8_t { kAlu, kTensor, kSpecial, kLsu, kL1, kL2, kDram };
inline constexpr size_t kPipes = 7;
using PipeCosts = std::array<double, kPipes>;

// A kernel as one scheduler sees it, whatever the number of its warps.
struct PipeKernel {
  double stall_share = 0;      // q: probability that a ready warp stalls after an instruction
  double latency_cycles = 0;   // L: a stall without a queue
  double issue_cycles = 1;     // c: issue slots of one instruction, at least 1
  PipeCosts pipe_cycles = {};  // d: of each pipe during one stall
};

bool IsUsable(const PipeKernel& kernel);

struct PipeResident {
  PipeKernel kernel = {};
  int32_t units = 0;
  double warps_per_unit = 1;
};

// Shares of the younger kernel while the older one waits for the same slot. At 1 age does not
// matter.
struct Arbitration {
  // Instructions that a ready warp of the younger kernel issues while each one of the older issues
  // one.
  double younger_issue = 0.02;
  // Slowdown of the older kernel on a pipe of the SM, over that of the younger. L2 and DRAM know no
  // age.
  double older_wait = 0.3;
};

// IPC of `kernels`, at most two and the oldest first, on an SM with so many schedulers.
ChainIpc SolvePipeChain(int32_t schedulers, std::span<const PipeResident> kernels,
                        const Arbitration& arbitration, ChainWorkspace& workspace);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_CHAIN_H_
