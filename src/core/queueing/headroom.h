// How much time active LC queries can still give away.
//
// Pure functions of predicted durations: Baymax eq. 3-5 (B5-B8) with the corrections that the
// project keeps with the papers. The plan stage fills the snapshot with them, and policies compare
// BE durations against them. A query is any type with deadline_ns, solo_ns, done_ns, issued_ns and
// headroom_ns. All times are nanoseconds; arithmetic saturates, and kNever means "no bound".
//
// The headroom of the i-th active query, in order of arrival, at time `now`:
//
//   T_hr(i) = deadline_i - now            Baymax eq. 4: T_tgt - T_used, with T_used = now - arrival
//             - T_q                       everything issued to the device and not done; of a graph
//                                         in segments, what an eviction of it has to wait for
//             - sum_{k <= i} remaining_k  T_self - sum_{j < i} T_j, and the earlier queries' rest
//   remaining_k = max(0, solo_k - done_k - issued_k)
//
// Corrections: eq. 4 sums T_j to i - 1, because task i is not done yet. remaining_k leaves issued
// tasks out, because T_q has them (Baymax eq. 3-4, Tacker eq. 9: T_queue and T_lc_i are disjoint).
// The formula contains the refill of Baymax 5.3 (B7): done_k counts processing time and `now` is
// real, so time that concurrent execution saved comes back at the next evaluation. Tacker's
// headroom (eq. 9) is that of the query that arrived last.
//
// Threads: any. Nothing allocates.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_HEADROOM_H_
#define GPUSHARE_SRC_CORE_QUEUEING_HEADROOM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/saturating.h"
#include "src/core/base/types.h"

namespace gpushare::core {

// remaining_k: what the query needs beyond what is done or issued. Predictions err: a query whose
// tasks took longer than predicted needs nothing more, not less than nothing.
template <class Query>
int64_t RemainingNotIssued(const Query& query) {
  return std::max<int64_t>(
      0, SaturatingSubtract(SaturatingSubtract(query.solo_ns, query.done_ns), query.issued_ns));
}

// Fills headroom_ns of every query; O(n). `queries` in order of arrival; queued_ns is T_q.
// kNever without a deadline; negative when the query is predicted to miss.
template <class Queries>
void ComputeHeadrooms(Queries&& queries, int64_t queued_ns, TimeNs now_ns) {
  int64_t before_ns = queued_ns;  // T_q and the remaining of the queries so far
  for (auto& query : queries) {
    before_ns = SaturatingAdd(before_ns, RemainingNotIssued(query));
    query.headroom_ns =
        query.deadline_ns == kNever
            ? kNever
            : SaturatingSubtract(SaturatingSubtract(query.deadline_ns, now_ns), before_ns);
  }
}

// Least headroom; kNever when there is none. A BE task of duration t may start when t <= this
// (Baymax 5.2.3: it is delayed when t is larger than the headroom of any active query).
template <class Queries>
int64_t LeastHeadroom(const Queries& queries) {
  int64_t least = kNever;
  for (const auto& query : queries) least = std::min(least, query.headroom_ns);
  return least;
}

// Baymax eq. 5: BE copies that may run at once in one direction,
// N_tr = floor(BW_peak / BW_memcpy) - 1, but at least 1: where one copy fills the link, eq. 5 would
// stop BE copies for ever, and the headroom test of 6.2 guards LC copies instead. 1 for rates that
// are not positive numbers. Any unit, the same for both.
inline int32_t ConcurrentCopies(double peak_rate, double copy_rate) {
  if (!(peak_rate > 0) || !(copy_rate > 0) || !std::isfinite(peak_rate)) return 1;
  const double at_full_speed = std::floor(peak_rate / copy_rate);
  // One copy fewer than there are task slots is more than any device runs.
  return static_cast<int32_t>(std::clamp(at_full_speed - 1, 1.0, double{kMaxTasks}));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_HEADROOM_H_
