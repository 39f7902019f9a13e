// What a query that begins beside BE work loses beyond the predicted delay of its eviction.
//
// BE work takes more from such a query than its SMs: its data displaces the query's from the
// caches. DenseNet-121 lost 200 us on an H200, where the eviction took 40. Four means tell it, of
// an LC app with a p99 bound. A first query is one that meets no other on the device:
//
//   quiet      latency of a first query, without BE work since the app's last query
//   behind     latency of a first query that BE work left for, less the predicted delay
//   predicted  that delay
//   next       time of a query that begins where the app's last one ended
//   excess     behind - quiet, less two standard errors, at least 0
//
// The excess counts as a part of each eviction. Quiet ones are rare where BE work always waits. So
// some idle periods are kept free of it, where behind + predicted - next is more than the app's
// budget: elsewhere no excess would change a decision. An excess that nobody has measured for long
// fades, because BE work may stay away because of it.
//
// Where in the flow: NoteFirst, NoteNext and FreeNext at a query's end, ExcessOf in plan. Threads:
// the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_START_DELAY_H_
#define GPUSHARE_SRC_CORE_STATE_START_DELAY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/mean_time.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"

namespace gpushare::core {

// Of one LC app.
struct StartDelay {
  MeanTime quiet;
  MeanTime behind;
  MeanTime predicted;
  MeanTime next;
  TimeNs behind_ns = 0;               // the last query of `behind`
  int32_t wanted = kStartQuietLeast;  // quiet queries
  TimeNs want_again_ns = 0;           // when as many are wanted again
  int32_t idle_periods = 0;           // while some were wanted
  TimeNs free_until_ns = 0;           // until then the idle period has no BE work
};

// A first query has ended. `predicted_ns`: the delay by what it met; 0: it was a quiet one.
inline void NoteFirst(StartDelay& start, int64_t latency_ns, int64_t predicted_ns, TimeNs now_ns) {
  if (predicted_ns > 0) {
    start.predicted.Add(static_cast<double>(predicted_ns), kStartMemory);
    start.behind.Add(static_cast<double>(latency_ns - predicted_ns), kStartMemory);
    start.behind_ns = now_ns;
    return;
  }
  start.quiet.Add(static_cast<double>(latency_ns), kStartMemory);
  if (start.wanted == 0) return;
  --start.wanted;
  start.want_again_ns = now_ns + kStartQuietEveryNs;
}

inline void NoteNext(StartDelay& start, int64_t service_ns) {
  start.next.Add(static_cast<double>(service_ns), kStartMemory);
}

// Whether the app's budget may be too short for what first queries lose.
inline bool MayExceed(const StartDelay& start, int64_t budget_ns) {
  if (start.behind.count < kStartLeast || start.next.count < kStartLeast) return false;
  return start.behind.mean_ns + start.predicted.mean_ns - start.next.mean_ns >
         static_cast<double>(budget_ns);
}

// The last query has ended: whether the idle period that begins is kept free of BE work.
inline bool FreeNext(StartDelay& start, int64_t budget_ns, TimeNs now_ns) {
  start.free_until_ns = 0;
  if (!MayExceed(start, budget_ns)) return false;
  if (start.wanted == 0 && now_ns >= start.want_again_ns) start.wanted = kStartQuietLeast;
  if (start.wanted == 0 || ++start.idle_periods % kStartFreeOneOf != 0) return false;
  start.free_until_ns = now_ns + kStartFreeNs;
  return true;
}

inline double ExcessOf(const StartDelay& start, TimeNs now_ns) {
  if (start.quiet.count < kStartQuietLeast || start.behind.count < kStartLeast) return 0;
  const double error = 2 * std::sqrt(start.quiet.SquaredError() + start.behind.SquaredError());
  const double age = static_cast<double>(now_ns - start.behind_ns) / kStartFadesNs;
  return std::max(0.0, start.behind.mean_ns - start.quiet.mean_ns - error) *
         std::clamp(1 - age, 0.0, 1.0);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_START_DELAY_H_
