// The tail account of an LC app: how many queries BE work may still make late.
//
// The bound is on the p99, so one query in a hundred may be late. What the app's own queue leaves
// of that hundredth is credit; each query that a task on credit made late spends one:
//
//   a query ends            + kTailShare - share of late queries that met no task on credit
//   quiet time              + kTailShare for each query that would have arrived in it
//   late, met such a task   - 1
//
// A task on credit is BE work that blocks longer than the app's budget and starts while no query is
// active. A query meets it if it arrives while the task runs, or in the busy period that this
// begins. With credit for all queries that it is likely to delay (TailNeedPerNs) a task may start,
// however long it is. Late is a latency above the target, and above p99_bound x p99 alone; where
// that p99 is unknown, every query that met the task counts.
//
// Sequence: NoteArrival when a query becomes active, NoteQuery when it ends, CreditQuietTime before
// the credit is read. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_TAIL_ACCOUNT_H_
#define GPUSHARE_SRC_CORE_STATE_TAIL_ACCOUNT_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/state/options.h"

namespace gpushare::core {

struct TailAccount {
  double credit = 0;                    // queries
  double late_share = kTailShareStart;  // of the queries that met no task on credit
  double gap_ns = 0;                    // mean time between arrivals, pauses included
  int64_t arrivals = 0;
  int64_t queries = 0;      // ended
  int64_t late_for_be = 0;  // of these, late and met a task on credit
  TimeNs first_arrival_ns = 0;
  TimeNs arrival_ns = 0;  // the last one; before the first, when the app was created
  TimeNs quiet_ns = 0;    // quiet time is credited up to here
};

// A latency above this is late; kNever while that is unknown.
inline int64_t LatencyLimit(const AppOptions& options) {
  int64_t limit_ns = options.target_ns > 0 ? options.target_ns : kNever;
  if (options.p99_bound > 0 && options.p99_alone_ns > 0) {
    const double bound_ns = options.p99_bound * static_cast<double>(options.p99_alone_ns);
    if (bound_ns < 9e18) limit_ns = std::min(limit_ns, static_cast<int64_t>(bound_ns));
  }
  return limit_ns;
}

// A first query, or several at once, show no rate yet.
inline double GapNs(const TailAccount& account) {
  return account.gap_ns > 0 ? account.gap_ns : kTailSilentNs;
}

inline void NoteArrival(TailAccount& account, TimeNs now_ns) {
  if (account.arrivals++ > 0) {
    const auto gap_ns = static_cast<double>(std::max<int64_t>(0, now_ns - account.arrival_ns));
    const auto weight = static_cast<double>(std::min(account.arrivals - 1, kTailGaps));
    account.gap_ns += (gap_ns - account.gap_ns) / weight;
  } else {
    account.first_arrival_ns = now_ns;
  }
  account.arrival_ns = now_ns;
}

inline void AddCredit(TailAccount& account, double queries) {
  account.credit = std::min(account.credit + queries, kTailCreditMax);
}

inline void NoteQuery(TailAccount& account, const AppOptions& options, int64_t latency_ns,
                      bool met_credit) {
  const int64_t limit_ns = LatencyLimit(options);
  const bool late = latency_ns > limit_ns;
  ++account.queries;
  // Without a known limit nothing shows what the app's own queue leaves.
  const bool known = limit_ns != kNever;
  AddCredit(account,
            known ? std::max(kTailShare - account.late_share, kTailShareMin) : kTailShareUnknown);
  if (met_credit) {
    const bool spends = late || !known;
    account.credit -= spends ? 1 : 0;
    account.late_for_be += spends ? 1 : 0;
    return;
  }
  const auto weight =
      static_cast<double>(std::min(account.queries + kTailShareQueries, kTailShareWindow));
  account.late_share += ((late ? 1.0 : 0.0) - account.late_share) / weight;
}

// A pause between two queries of a loaded app is no quiet time.
inline void CreditQuietTime(TailAccount& account, TimeNs now_ns) {
  if (account.arrivals == 0) return;
  const double gap_ns = GapNs(account);
  const TimeNs begin_ns = std::max(
      account.quiet_ns, account.arrival_ns + static_cast<int64_t>(kTailQuietGaps * gap_ns));
  if (now_ns <= begin_ns) return;
  AddCredit(account, kTailShare * static_cast<double>(now_ns - begin_ns) / gap_ns);
  account.quiet_ns = now_ns;
}

// Queries that a blocking of one nanosecond is likely to delay, on a device with this LC load:
// those that arrive in it, and until the queue that it leaves is empty again.
inline double TailNeedPerNs(const TailAccount& account, double load) {
  return 1 / (GapNs(account) * (1 - std::clamp(load, 0.0, kTailLoadMax)));
}

// Whether no query of the app has ever ended. It then holds no BE work, but for a moment after its
// creation. A first query that runs closes LC's places by itself; one that waits for the ticket of
// a BE task must not hold that task.
inline bool IsSilent(const TailAccount& account, TimeNs now_ns) {
  return account.queries == 0 && (account.arrivals > 0 || now_ns - account.arrival_ns >=
                                                              static_cast<int64_t>(kTailSilentNs));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_TAIL_ACCOUNT_H_
