// How long a query waits for a BE graph in segments, and what that does to the p99.
//
// A query that arrives while segment i runs waits for the rest of that segment, uniform on
// (0, d_i), and for c_i: the segment behind it if that is on the device too, else 0. A query meets
// segment i with the probability d_i / T, its share of the graph's time T. The wait W is an
// independent residual of the queue (vacation.h). So the p99 moves by ln E[exp(eta W)] / eta, where
//
//   E[exp(eta W)] = sum over i of (d_i / T) exp(eta c_i) (exp(eta r_i) - 1) / (eta r_i)
//
// with r_i = d_i. A segment that is evicted between its block tasks has a block task as r_i, and
// c_i = 0: nothing is behind it. Behind another segment it counts as one block task, which it may
// begin before it sees the eviction.
//
// One long kernel among many short ones moves it by much less than its length. Segments whose
// longest wait d + c is within a factor of sqrt(2) share a class, with their mean d and c; the
// shorter ones share the last class. Pure; any thread.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_SEGMENT_BLOCKING_H_
#define GPUSHARE_SRC_CORE_QUEUEING_SEGMENT_BLOCKING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {

// What is on the device of a graph in segments, or follows it.
struct SegmentLoad {
  int64_t duration_ns = 0;
  bool evictable = false;  // one segment that may be evicted between its block tasks
};

// Whether `next` is launched behind what is on the device, before that has ended. Nothing is behind
// a segment that may leave with block tasks undone (the chain rule, state/shared/lc_gate.h). Such a
// segment is behind any other, because it leaves soon. Others take together at most as long as
// kSegmentsOutstanding segments of segment_ns, so a long one runs alone.
constexpr bool JoinsOutstanding(SegmentLoad outstanding, SegmentLoad next, int64_t segment_ns) {
  if (outstanding.evictable) return false;
  if (next.evictable) return true;
  return outstanding.duration_ns + next.duration_ns <= kSegmentsOutstanding * segment_ns;
}

class SegmentBlocking {
 public:
  SegmentBlocking() = default;  // nothing is known
  // Of segments that take so long alone on the whole device. `block_tasks_ns`: one block task of
  // each segment that may be evicted between them, 0 for others; empty: none may.
  SegmentBlocking(absl::Span<const int64_t> durations_ns, int64_t segment_ns,
                  absl::Span<const int64_t> block_tasks_ns = {});

  bool known() const { return classes_ > 0; }
  // The longest that a query waits.
  int64_t longest_ns() const { return longest_ns_; }
  // E[exp(eta W)]; infinite where the exponent is too large to matter.
  double Moment(double tail_rate) const;
  // How far the p99 moves; the longest wait where eta is 0, which is unknown. `seen_mean_ns`, if it
  // is not 0, is the mean wait of queries so far. Where it is the shorter one, all waits count as
  // shorter in proportion: a query has priority, so its blocks start where blocks of a kernel end.
  int64_t ShiftNs(double tail_rate, double seen_mean_ns = 0) const;
  // The mean of W.
  double mean_ns() const;

 private:
  static constexpr size_t kClasses = 16;  // half octaves: from the longest wait to 1 / 180 of it

  struct Class {
    double share = 0;  // of the graph's time
    double running_ns = 0;
    double behind_ns = 0;
  };

  std::array<Class, kClasses> class_ = {};
  size_t classes_ = 0;
  int64_t longest_ns_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_SEGMENT_BLOCKING_H_
