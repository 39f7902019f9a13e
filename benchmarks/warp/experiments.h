// The experiments of warp_benchmark. Each prints one JSON object to stdout and a table to stderr.

#ifndef GPUSHARE_BENCHMARKS_WARP_EXPERIMENTS_H_
#define GPUSHARE_BENCHMARKS_WARP_EXPERIMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/sim/warp/machine.h"

namespace gpushare::warp_experiments {

struct Options {
  sim::warp::Machine machine;
  std::vector<std::string> kernels;  // empty: all
  uint64_t seed = 1;
  int64_t second_launch_cycle = 0;
  double memory_share = 1;  // of L2 and the bandwidths, in shares of one SM
};

// Figures 4.2 and 4.3: two instances of each of the eight benchmarks, half an SM each.
int Figures(const Options& options);

// Pairs of the overlap table of docs/hardware.md, in both orders of launch: time saved against one
// after the other.
int Overlap(const Options& options);

// The speed of a kernel beside another one whose use of the issue slots rises to all of them.
int Starvation(const Options& options);

// When the warps of a scheduler end that all run the same loop.
int Order(const Options& options);

// Simulated warp instructions a second. Returns 1 below the goal.
int Rate(const Options& options);

}  // namespace gpushare::warp_experiments

#endif  // GPUSHARE_BENCHMARKS_WARP_EXPERIMENTS_H_
