// A kernel alone, or two kernels that run slice after slice beside each other: how long a block
// task takes.
//
// In real time each duration is the median of several measurements. Threads: as a Rig.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_PAIR_RIG_H_
#define GPUSHARE_BENCHMARKS_KERNELET_PAIR_RIG_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

class PairRig {
 public:
  // Blocks of a slice on each SM, for each kernel; 0: the task runs whole.
  struct Slices {
    std::array<int32_t, 2> per_sm = {};
  };

  // One kernel or two: the measured one first.
  PairRig(const std::vector<std::string>& kernels, const RigOptions& options);

  // Time of one block task of the first kernel, over all SMs, beside the second if there is one.
  // No task is left when it returns.
  double BlockNs(Slices slices);
  const Runtime& runtime() const { return rig_.runtime(); }
  int64_t sm_count() const { return rig_.sm_count(); }

 private:
  void StartNeighbour();
  void StopNeighbour();

  const std::vector<std::string> kernels_;
  const int repeats_;
  Slices slices_;  // the rig's policy reads it
  Rig rig_;
  Ticket neighbour_;
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_PAIR_RIG_H_
