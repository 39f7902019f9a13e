// How much time active LC queries can still give away, and how long BE work may block them.
//
// Pure functions of predicted durations: Baymax eq. 3-5 (B5-B8) with the corrections that the
// project keeps with the papers. The plan stage fills the snapshot with them, and policies compare
// BE durations against them. All times are nanoseconds; arithmetic saturates, and kNever means "no
// bound".
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

#ifndef GPUSHARE_SRC_CORE_SEAMS_HEADROOM_H_
#define GPUSHARE_SRC_CORE_SEAMS_HEADROOM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// kNever stays kNever ("no bound" less anything is no bound); otherwise clamped to the range of
// int64 without reaching kNever.
int64_t SaturatingSubtract(int64_t from, int64_t amount);
// kNever when either is kNever; for amounts >= 0 the sum is clamped to kNever.
int64_t SaturatingAdd(int64_t a, int64_t b);

// remaining_k: what the query needs beyond what is done or issued. Never negative.
int64_t RemainingNotIssued(const QueryView& query);

// Fills headroom_ns of every query; O(n). `queries` in order of arrival; queued_ns is
// Snapshot::queued_ns. kNever without a deadline; negative when the query is predicted to miss.
void ComputeHeadrooms(absl::Span<QueryView> queries, int64_t queued_ns, TimeNs now_ns);

// Least headroom; kNever when there is none. A BE task of duration t may start when t <= this
// (Baymax 5.2.3: it is delayed when t is larger than the headroom of any active query).
int64_t LeastHeadroom(absl::Span<const QueryView> queries);

// Baymax eq. 5: BE copies that may run at once in one direction,
// N_tr = floor(BW_peak / BW_memcpy) - 1, but at least 1: where one copy fills the link, eq. 5 would
// stop BE copies for ever, and the headroom test of 6.2 guards LC copies instead. 1 for rates that
// are not positive numbers. Any unit, the same for both.
int32_t ConcurrentCopies(double peak_rate, double copy_rate);

// The delay that an LC app tolerates at the begin of every busy period, as an eviction is. From the
// bound on p99: (bound - 1) x p99 alone; from the target: target - solo; the smaller when it states
// both, kNever when neither. Never negative. vacation.h has the longer launches that nothing
// evicts. p99_alone_ns 0 is unknown: then the solo duration stands in for it (p99 is never below
// it), and with neither known the budget is 0.
int64_t BlockingBudget(int64_t target_ns, double p99_bound, int64_t p99_alone_ns, int64_t solo_ns);

// The bound to plan with: 1 + share x (bound - 1), or bound - kBoundMarginMax if that is larger. 0,
// no bound, stays 0.
double PlannedBound(double bound, double share);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_HEADROOM_H_
