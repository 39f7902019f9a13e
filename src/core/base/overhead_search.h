// The smallest value of a parameter whose overhead is within a limit: block tasks of a claim, size
// of a slice (Kernelet 4.1: the smallest slice within p %).
//
// Where in the flow: a device chooses its claims with it when a kernel is prepared (claim_batch.h),
// the benchmarks with measured overheads. The search assumes that the overhead falls as the value
// rises. Where it does not, as with noisy measurements, the answer still keeps the limit, but a
// smaller value might keep it too. Threads: any.

#ifndef GPUSHARE_SRC_CORE_BASE_OVERHEAD_SEARCH_H_
#define GPUSHARE_SRC_CORE_BASE_OVERHEAD_SEARCH_H_

#include <algorithm>
#include <cstdint>

namespace gpushare::core {

struct OverheadChoice {
  uint32_t value = 1;
  double overhead = 0;  // at `value`; 0.02 = 2 %
  bool met = false;     // the overhead is within the limit
  int tried = 0;        // values that were looked at
};

// Doubles from `least` until the overhead is within the limit or `most` is reached, then halves the
// step back: about 2 log2(most / least) calls of `overhead_of(value)`. When not even `most` keeps
// the limit: the smallest value tried whose overhead is within `slack` of the least one tried.
// Needs 1 <= least <= most.
template <class OverheadOf>
OverheadChoice FindSmallestWithin(uint32_t least, uint32_t most, double limit, double slack,
                                  OverheadOf overhead_of) {
  // Doubling 32-bit values ends after so many steps.
  constexpr int kTriesMax = 33;
  OverheadChoice seen[kTriesMax];
  int count = 0;
  uint32_t value = least;
  for (;;) {
    const double overhead = overhead_of(value);
    seen[count] = {value, overhead, overhead <= limit, count + 1};
    ++count;
    if (seen[count - 1].met || value >= most || count == kTriesMax) break;
    value = value > most / 2 ? most : 2 * value;
  }
  OverheadChoice best = seen[count - 1];
  if (!best.met) {
    double lowest = best.overhead;
    for (int i = 0; i < count; ++i) lowest = std::min(lowest, seen[i].overhead);
    int i = 0;
    while (seen[i].overhead > lowest + slack) ++i;
    best = seen[i];
    best.tried = count;
    return best;
  }
  // (above, best]: the smallest within the limit lies there.
  uint32_t above = count > 1 ? seen[count - 2].value : best.value - 1;
  while (best.value - above > 1) {
    const uint32_t middle = above + (best.value - above) / 2;
    const double overhead = overhead_of(middle);
    ++count;
    if (overhead <= limit) {
      best = {middle, overhead, true, count};
    } else {
      above = middle;
    }
  }
  best.tried = count;
  return best;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_OVERHEAD_SEARCH_H_
