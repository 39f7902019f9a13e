// How much time active LC queries can still give away, and how long BE work may block them.
//
// Pure functions of predicted durations: Baymax eq. 3-5 (B5-B8) and Tacker eq. 7 and 9, as
// corrected by the errata that the project keeps with the papers. The plan stage fills the snapshot
// with them; policies compare BE durations against them. All times are nanoseconds; arithmetic
// saturates, with kNever as "no bound".
//
// The one formula, for the i-th active query in order of arrival at time `now`:
//
//   T_hr(i) = deadline_i - now            Baymax eq. 4: T_tgt - T_used, with T_used = now - arrival
//             - T_q                       everything issued to the device and not done
//             - remaining_i               T_self - sum_{j < i} T_j, less what of it T_q counts
//             - sum_{k before i} remaining_k
//   remaining_k = max(0, solo_k - done_k - issued_k)
//
// Corrections: eq. 4 sums T_j to i - 1 (task i is not done yet); remaining_k leaves issued tasks
// out because T_q has them (Baymax eq. 3-4, Tacker eq. 9: T_queue and T_lc_i are disjoint).
// Refill (Baymax 5.3, B7) is in the formula: done_k counts processing time and `now` is real, so
// time that concurrent execution saved comes back at the next evaluation. Baymax-NC is
// HeadroomWithoutRefill.
//
// Threads: any. Nothing allocates.

#ifndef GPUSHARE_SRC_CORE_SEAMS_HEADROOM_H_
#define GPUSHARE_SRC_CORE_SEAMS_HEADROOM_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// --- saturating arithmetic
// ------------------------------------------------------------------------

// kNever stays kNever ("no bound" less anything is no bound); otherwise clamped to the range of
// int64 without reaching kNever.
int64_t SaturatingSubtract(int64_t from, int64_t amount);
// kNever when either is kNever; for amounts >= 0 the sum is clamped to kNever.
int64_t SaturatingAdd(int64_t a, int64_t b);

// --- headroom of active queries
// -------------------------------------------------------------------

// One active query. Durations >= 0.
struct QueryTimes {
  TimeNs arrival_ns = 0;
  TimeNs deadline_ns = kNever;  // arrival + target; kNever: no target
  int64_t solo_ns = 0;          // T_self: predicted duration of all its tasks
  int64_t issued_ns = 0;        // predicted duration of its tasks on the device, part of T_q
  int64_t done_ns = 0;          // processing time of its completed tasks
};

// remaining_k: what the query still needs beyond what is done or issued.
int64_t RemainingNotIssued(const QueryTimes& query);

// The formula for one query after another, in order of arrival.
class HeadroomScan {
 public:
  HeadroomScan(int64_t queued_ns, TimeNs now_ns) : before_ns_(queued_ns), now_ns_(now_ns) {}
  // kNever without a deadline; negative when the query is predicted to miss.
  int64_t Next(const QueryTimes& query);

 private:
  int64_t before_ns_;  // T_q and the remaining of the queries so far
  TimeNs now_ns_;
};

// Baymax eq. 3-4 for every query; O(n). `queries` in order of arrival, headroom_ns as long.
void ComputeHeadrooms(absl::Span<const QueryTimes> queries, int64_t queued_ns, TimeNs now_ns,
                      absl::Span<int64_t> headroom_ns);
// The same on the snapshot's own rows: fills headroom_ns. queued_ns is Snapshot::queued_ns.
void ComputeHeadrooms(absl::Span<QueryView> queries, int64_t queued_ns, TimeNs now_ns);

// Least headroom; kNever when there is none. A BE task of duration t may start when t <= this
// (Baymax 5.2.3: it is delayed when t is larger than the headroom of any active query).
int64_t LeastHeadroom(absl::Span<const QueryView> queries);
int64_t LeastHeadroom(absl::Span<const int64_t> headroom_ns);

// Baymax 5.2.3: every headroom is reduced by the duration of a BE task that starts.
void DebitHeadrooms(absl::Span<int64_t> headroom_ns, int64_t duration_ns);

// Baymax-NC, the ablation without 5.3: what concurrent execution saved is never given back, so a
// query's headroom only falls from its value of eq. 3 by what was debited.
int64_t HeadroomWithoutRefill(int64_t previous_ns, int64_t recomputed_ns);

// Tacker eq. 7: T_queue + T_lc + T_fuse + T_be <= T_qos.
bool MeetsTarget(int64_t queue_ns, int64_t lc_ns, int64_t fuse_ns, int64_t be_ns,
                 int64_t target_ns);

// Tacker eq. 9: headroom of the query that arrived last, at time `now`; the only one that Tacker
// reorders and fuses for. kNever when none is active. The same value as ComputeHeadrooms' last.
int64_t TackerHeadroom(absl::Span<const QueryTimes> queries, int64_t queued_ns, TimeNs now_ns);

// --- gates on what is issued
// ----------------------------------------------------------------------

// Baymax 5.2.1 as corrected: the largest T_q that still lets a query that arrives now meet its
// target, min over LC apps with a target of T_tgt - T_self. kNever without such an app, never
// negative (an app that cannot meet its target even alone must not stop all BE work for ever). BE
// work is held while T_q is above it. (The paper gates at T_q > T_tgt: then a query that arrives
// must miss.)
int64_t QueuedTimeGate(absl::Span<const LcAppView> apps);

// Baymax eq. 5: BE copies that may run at once in one direction,
// N_tr = floor(BW_peak / BW_memcpy) - 1, but at least 1: where one copy fills the link, eq. 5 would
// stop BE copies for ever, and the headroom test of 6.2 guards LC copies instead. 1 for rates that
// are not positive numbers. Any unit, the same for both.
int32_t ConcurrentCopies(double peak_rate, double copy_rate);

// --- blocking
// -------------------------------------------------------------------------------------

// The blocking that an LC app tolerates from a launch that is on the device when its next query
// arrives. From the bound on p99, while there is no queueing model: (bound - 1) x p99 alone; from
// the target: target - solo; the smaller when it states both, kNever when neither. Never negative.
// p99_alone_ns 0 is unknown: then the solo duration stands in for it (p99 is never below it), and
// with neither known the budget is 0.
int64_t BlockingBudget(int64_t target_ns, double p99_bound, int64_t p99_alone_ns, int64_t solo_ns);

// The longest that a launch can keep an LC kernel waiting: min(remaining duration, eviction
// latency). eviction_ns is kNever when the launch cannot be evicted.
constexpr int64_t BlockingTime(int64_t remaining_ns, int64_t eviction_ns) {
  return remaining_ns < eviction_ns ? remaining_ns : eviction_ns;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_HEADROOM_H_
