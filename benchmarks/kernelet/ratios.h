// All slice ratios of two kernels: how many blocks of each an SM holds beside the other's.
//
// A block of a kernel of which an SM holds M takes at most 1 / M of any resource. So a and b blocks
// fit together when a / M_a + b / M_b <= 1. Of each b the largest a counts: fewer would leave room.
// Threads: plain data.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_RATIOS_H_
#define GPUSHARE_BENCHMARKS_KERNELET_RATIOS_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace gpushare::kernelet {

// Slices of two kernels with so many blocks an SM each. Kernels in alphabetical order.
struct PairRatio {
  std::array<std::string, 2> kernel;
  std::array<int32_t, 2> workers = {};
  bool operator<(const PairRatio& other) const {
    return std::tie(kernel, workers) < std::tie(other.kernel, other.workers);
  }
};

struct SizedKernel {
  std::string name;
  int32_t workers_per_sm_max = 1;
};
// Of one pair; one of a kernel with itself too.
std::vector<PairRatio> RatiosOf(const SizedKernel& one, const SizedKernel& other);
// Of all pairs.
std::vector<PairRatio> AllRatios(const std::vector<SizedKernel>& kernels);

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_RATIOS_H_
