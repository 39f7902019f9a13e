// What a BE graph in segments gains beside LC queries, measured: a share of the LC work's time.
//
// It runs beside them on the whole device, or on a split: each way has a gain of its own. While
// plans have one way, BE work of A and LC work of L, each as long as it takes alone, are done in a
// time T. One after the other they would take A + L, so the gain is
// (A + L - T) / L: what BE work does while queries run, less what it slows them by. It is far from
// the same everywhere: a prefill fills the device, a network of small kernels leaves most of it.
//
// An interval ends with each part of such a graph, and the next one begins. It counts for all
// graphs in segments that were on the device, with all BE work that ended in it, but not where it
// began soon after the change to a split. A query counts where it ends: what one interval has too
// much of it, the next has too little. Work counts as long as predicted, so only graphs are
// measured whose duration is known.
//
// The first idea has the weight of kSegmentGainFirstNs of LC work. On the whole device it is nearly
// the best that was seen, so that the gain is measured where it may pay. On a split it is what the
// policy predicts. A measurement that is not renewed fades: other services may leave more.
//
// Where in the flow: FollowPlan in plan, NoteBePart in complete, NoteLcWork at a query's end.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_SEGMENT_GAIN_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_SEGMENT_GAIN_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// Of one graph in one way: sums over its intervals.
struct MeasuredGain {
  double gained_ns = 0;  // A + L - T
  double lc_ns = 0;      // L, at most kSegmentGainMemoryNs
  TimeNs updated_ns = 0;
};

struct SegmentGains {
  using ByKernel = std::array<MeasuredGain, kMaxKernels + 1>;  // by KernelId
  ByKernel beside_queries;
  ByKernel on_split;
  SegmentsRun way = SegmentsRun::kNone;
  TimeNs begin_ns = kNever;  // from when on it is measured; kNever: in none
  // Of the interval that is under way.
  TimeNs since_ns = 0;
  double be_ns = 0;
  double lc_ns = 0;
};

inline void BeginInterval(SegmentGains& gains, TimeNs now_ns) {
  gains.since_ns = now_ns;
  gains.be_ns = gains.lc_ns = 0;
}

// Forgets the interval, and what is on the device: it would count whole in a shorter time.
inline void BeginAnew(SegmentGains& gains, TimeNs now_ns) {
  if (gains.begin_ns == kNever) return;
  gains.begin_ns = std::max(gains.begin_ns, now_ns);
  BeginInterval(gains, now_ns);
}

// A plan was made that runs segments in this way.
inline void FollowPlan(SegmentGains& gains, SegmentsRun way, TimeNs now_ns) {
  if (way == gains.way) return;
  gains.way = way;
  const int64_t settle_ns = way == SegmentsRun::kOnSplit ? kSegmentGainSettleNs : 0;
  gains.begin_ns = way == SegmentsRun::kNone ? kNever : now_ns + settle_ns;
  BeginInterval(gains, now_ns);
}

// A query of `solo_ns` alone has ended.
inline void NoteLcWork(SegmentGains& gains, int64_t solo_ns) {
  gains.lc_ns += static_cast<double>(solo_ns);
}

// A part of BE work has ended that would have taken `work_ns` alone.
inline void NoteBePart(SegmentGains& gains, TimeNs launched_ns, double work_ns, TimeNs now_ns) {
  if (gains.begin_ns == kNever) return;
  // Another part that is on the device counts a little too much, once. If it had to end first too,
  // two parts that overlap could keep each other from ever being measured.
  if (launched_ns < gains.begin_ns) return BeginInterval(gains, now_ns);
  gains.be_ns += work_ns;
}

// What of a measurement counts, by its age.
inline double KeptOf(const MeasuredGain& gain, TimeNs now_ns) {
  const double age = static_cast<double>(now_ns - gain.updated_ns) / kMeasuredFadesNs;
  return std::clamp(1 - age, 0.0, 1.0);
}

// The interval that ends now counts for the graph too.
inline void CreditInterval(SegmentGains& gains, KernelId graph, TimeNs now_ns) {
  if (gains.begin_ns == kNever || gains.since_ns < gains.begin_ns) return;
  auto& by_kernel =
      gains.way == SegmentsRun::kBesideQueries ? gains.beside_queries : gains.on_split;
  MeasuredGain& gain = by_kernel[graph.value];
  const double kept = KeptOf(gain, now_ns);
  const double time_ns = static_cast<double>(now_ns - gains.since_ns);
  gain.gained_ns = kept * gain.gained_ns + gains.be_ns + gains.lc_ns - time_ns;
  gain.lc_ns = kept * gain.lc_ns + gains.lc_ns;
  gain.updated_ns = now_ns;
  if (gain.lc_ns > kSegmentGainMemoryNs) {
    gain.gained_ns *= kSegmentGainMemoryNs / gain.lc_ns;
    gain.lc_ns = kSegmentGainMemoryNs;
  }
}

inline double GainOf(const SegmentGains& gains, KernelId graph, TimeNs now_ns) {
  const MeasuredGain& gain = gains.beside_queries[graph.value];
  const double kept = KeptOf(gain, now_ns);
  return std::clamp((kSegmentGain * kSegmentGainFirstNs + kept * gain.gained_ns) /
                        (kSegmentGainFirstNs + kept * gain.lc_ns),
                    0.0, 1.0);
}

// On a split: what was measured, and how much it counts beside a prediction, 0 to 1.
struct SplitGain {
  double gain = 0;
  double known = 0;
};
inline SplitGain SplitGainOf(const SegmentGains& gains, KernelId graph, TimeNs now_ns) {
  const MeasuredGain& gain = gains.on_split[graph.value];
  const double lc_ns = KeptOf(gain, now_ns) * gain.lc_ns;
  if (!(lc_ns > 0)) return {};
  return {std::clamp(gain.gained_ns / gain.lc_ns, -1.0, 1.0),
          lc_ns / (kSegmentGainFirstNs + lc_ns)};
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_SEGMENT_GAIN_H_
