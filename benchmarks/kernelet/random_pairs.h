// MC's schedules (Kernelet 5.1): pairs and slice ratios picked at random.
//
// A pure policy: its choice is a hash of the seed and of the tasks that are pending, so that the
// same co-schedule goes on until a kernel ends or another one comes to the head of its queue, as in
// algorithm 1. Every pair of two kernels and each ratio with which they fit in an SM is as likely.
// A kernel that is left alone runs whole.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_RANDOM_PAIRS_H_
#define GPUSHARE_BENCHMARKS_KERNELET_RANDOM_PAIRS_H_

#include <cstdint>

#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

class RandomPairs {
 public:
  explicit RandomPairs(uint64_t seed) : seed_(seed) {}
  // Must outlive the runtime.
  Scheduler Policy();

 private:
  const uint64_t seed_;
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_RANDOM_PAIRS_H_
