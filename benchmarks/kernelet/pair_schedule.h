// A schedule of pairs as Kernelet's algorithm 1 makes them, with any choice of the pair and of its
// slice ratio: OPT's, which knows them all, and MC's, which picks at random (Kernelet 5.1).
//
//   PairSchedule schedule(PairSchedule::Choice::kRandom, options, seed);
//   TotalNs(mix, load, schedule.For(mix.kernels), rig);   // of a rig with these kernels, in order
//
// The choice stays until a kernel ends or arrives, because it depends on these alone. Each kernel's
// slices wait two deep on its lane. Slices that are not of the pair end before others start.
//
// kBest: of all pairs and ratios the one with the largest sum of speeds; where none gains, the
// oldest kernel by itself in long slices. kRandom: a hash of the seed and of the pending tasks,
// every ratio of every pair as likely; a kernel that is left alone runs whole.
//
// Threads: a schedule is read only. It must outlive the runtimes that run it.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_PAIR_SCHEDULE_H_
#define GPUSHARE_BENCHMARKS_KERNELET_PAIR_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/kernelet/ratios.h"
#include "benchmarks/kernelet/rig.h"

namespace gpushare::kernelet {

// A ratio and what its slices gain: the sum of both speeds, relative to alone; 0: unknown.
struct RatedRatio {
  PairRatio ratio;
  double speeds = 0;
};

class PairSchedule {
 public:
  enum class Choice : uint8_t { kBest, kRandom };

  PairSchedule(Choice choice, const std::vector<RatedRatio>& ratios, uint64_t seed = 0);

  // Of a rig whose kernels are these, in this order.
  Scheduler For(const std::vector<std::string>& kernels);

  // Ratios of two kernels, by their place in the rig. The first kernel is the pair's first one.
  struct Rated {
    std::array<int32_t, 2> workers = {};
    double speeds = 0;
  };
  using Table = std::map<std::pair<int32_t, int32_t>, std::vector<Rated>>;
  struct Rigged {
    Choice choice;
    uint64_t seed;
    Table table;
  };

 private:
  const Choice choice_;
  const uint64_t seed_;
  const std::vector<RatedRatio> ratios_;
  std::vector<std::unique_ptr<Rigged>> rigged_;
};

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_PAIR_SCHEDULE_H_
