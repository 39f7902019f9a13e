// How long the pauses of an LC app last: how often they end, by their age.
//
// A pause is a time without a query of more than kLoadForgottenNs. Ages are in ranges that double.
// For each range the counts say how many pauses ended there, and the time that pauses were that
// old. Pauses of about the same length so end in one range, and pauses at random end equally often
// in all.
//
// Sequence: Add when a pause has ended. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_PAUSE_AGES_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_PAUSE_AGES_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"

namespace gpushare::core {

// The last range has no end. Of kTailGaps pauses, of which older ones fade.
struct PauseAges {
  static constexpr int kRanges = 16;  // the last one begins after 23 hours

  static constexpr double Begin(int range) {
    return kLoadForgottenNs * static_cast<double>(int64_t{1} << range);
  }
  static constexpr double End(int range) {
    return range + 1 < kRanges ? Begin(range + 1) : static_cast<double>(kNever);
  }
  static constexpr int RangeOf(double age_ns) {
    int range = 0;
    while (range + 1 < kRanges && age_ns >= End(range)) ++range;
    return range;
  }

  void Add(double pause_ns) {
    for (int r = 0; r < kRanges; ++r) {
      ended[r] -= ended[r] / static_cast<double>(kTailGaps);
      time_ns[r] -= time_ns[r] / static_cast<double>(kTailGaps);
      if (pause_ns < Begin(r)) continue;
      ended[r] += pause_ns < End(r) ? 1 : 0;
      time_ns[r] += std::min(pause_ns, End(r)) - Begin(r);
    }
  }

  // Pauses that end, a nanosecond of a pause in the range. One more counts that ended after as long
  // as a pause takes to the range: nothing is known of an age before.
  double Rate(int range) const { return (1 + ended[range]) / (Begin(range) + time_ns[range]); }

  double ended[kRanges] = {};
  double time_ns[kRanges] = {};
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_PAUSE_AGES_H_
