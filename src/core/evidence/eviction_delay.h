// How much later than alone the queries of a busy period end that began with an eviction.
//
// The first query waits until BE work has left its SMs, and the queries behind it wait for it. What
// is left of a graph in segments takes SMs between launches too, of several queries, so that the
// delay grows: 20 us for a query of five short launches, and 60 us for those of a p99 at a load of
// 0.3. So the delay of a query is its latency less that in the shadow, and those count that are
// among the slowest there too: the p99 is theirs.
//
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_EVICTION_DELAY_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_EVICTION_DELAY_H_

#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

// Of one LC app.
struct EvictionDelay {
  // Of the busy period, by its first launch.
  KernelId evicted;  // 0: nothing, or not that alone
  KernelId kernel;   // that the launch ran
  bool kernel_trained = false;
  int64_t launch_ns = 0;  // from the launch until the device may begin it, as without an eviction
  int64_t delay_ns = 0;   // of the last query
  bool counts = false;    // that says how long such queries are delayed
};

// A launch behind the first one met this kernel; 0: none.
inline void NoteMet(EvictionDelay& delay, KernelId met) {
  if (met && met != delay.evicted) delay.evicted = KernelId();
}

// A query has ended so much later on the device than in the shadow.
inline void NoteDelay(EvictionDelay& delay, bool is_slow, int64_t delay_ns) {
  delay.delay_ns = delay_ns - delay.launch_ns;
  delay.counts = is_slow && delay.evicted;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_EVICTION_DELAY_H_
