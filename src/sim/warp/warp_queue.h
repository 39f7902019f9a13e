// The prioritized queue of warps that a policy makes each cycle, without sorting.
//
// Algorithm 4 goes through the queue until it finds a warp that can issue. That needs the order,
// not a list: at most one greedy warp, then the warps of the first group, then those of the second,
// each group by age or in rotation. So a cycle costs a few operations on masks; that the order is
// the sorted list's is a property test. Threads: one at a time.

#ifndef GPUSHARE_SRC_SIM_WARP_WARP_QUEUE_H_
#define GPUSHARE_SRC_SIM_WARP_WARP_QUEUE_H_

#include <array>
#include <bit>
#include <cstdint>

#include "src/sim/warp/machine.h"

namespace gpushare::sim::warp {

inline constexpr int kGroups = 2;
inline constexpr int kNone = -1;

// The warps of one scheduler. A slot is a bit of the masks.
struct Pool {
  uint64_t live = 0;
  std::array<uint64_t, kGroups> group = {};            // by priority; group 0 is the first launch's
  std::array<int64_t, kMaxWarpsPerScheduler> id = {};  // rises with the time of arrival
  int64_t changes = 0;                                 // rises whenever a warp comes or goes
};

// The slot of the smallest identifier; the mask is not empty.
inline int Oldest(const Pool& pool, uint64_t mask) {
  int oldest = std::countr_zero(mask);
  for (mask &= mask - 1; mask != 0; mask &= mask - 1) {
    const int slot = std::countr_zero(mask);
    if (pool.id[static_cast<size_t>(slot)] < pool.id[static_cast<size_t>(oldest)]) oldest = slot;
  }
  return oldest;
}

struct WarpQueue {
  int greedy = kNone;  // a slot ahead of `first`
  uint64_t first = 0;
  uint64_t second = 0;
  int first_group = 0;   // to which `first` belongs, where it is one group
  bool rotates = false;  // `first` in the order of slots, from the one behind `last`
  int last = kNone;

  // The first warp of the queue that is among these, or kNone.
  int First(const Pool& pool, uint64_t among) const {
    if (greedy != kNone && ((among >> greedy) & 1) != 0) return greedy;
    if (const uint64_t left = first & among; left != 0) {
      return rotates ? NextInRotation(left) : Oldest(pool, left);
    }
    const uint64_t left = second & among;
    return left == 0 ? kNone : Oldest(pool, left);
  }

 private:
  int NextInRotation(uint64_t mask) const {
    if (last == kNone) return std::countr_zero(mask);
    const uint64_t up_to_last = (uint64_t{2} << last) - 1;  // all bits where last is 63
    const uint64_t behind = mask & ~up_to_last;
    return std::countr_zero(behind != 0 ? behind : mask);
  }
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_WARP_QUEUE_H_
