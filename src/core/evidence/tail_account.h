// The tail account of an LC app: how many queries BE work may still make late.
//
// The bound is on the p99, so one query in a hundred may be late. What the app's own queue leaves
// of that hundredth is credit; each query that a task on credit made late spends one:
//
//   a query ends            + kTailShare - share of late queries that met no task on credit
//   quiet time              + kTailShare for each query that would have arrived in it
//   late, met such a task   - 1, down to a debt of kTailDebtMax
//
// Quiet time begins after a pause of kLoadForgottenNs. What it earns is an advance on the queries
// that come after it: what these earn repays it first. So arrivals in bursts earn no more than a
// steady load.
//
// A task on credit is BE work that blocks longer than the app's budget and starts while no query is
// active. A query meets it if it arrives while the task runs, or in the busy period that this
// begins. With credit for all queries that it is likely to delay (TailNeedPerNs), and for one at
// least while the app has a load, a task may start,
// however long it is. Late is a latency above the promise's limit; where that is
// unknown, every query that met the task counts.
//
// Sequence: NoteArrival when a query becomes active, NoteQuery when it ends, CreditQuietTime before
// the credit is read. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_TAIL_ACCOUNT_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_TAIL_ACCOUNT_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/promise/promise.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {

struct TailAccount {
  double credit = 0;               // queries
  double advance = 0;              // of it, earned by quiet time and not yet by queries
  double late_share = kLateOfP99;  // of the queries that met no task on credit
  double gap_ns = 0;               // mean time between the last arrivals
  int64_t arrivals = 0;
  int64_t queries = 0;      // ended
  int64_t late_for_be = 0;  // of these, late and met a task on credit
  TimeNs first_arrival_ns = 0;
  TimeNs arrival_ns = 0;  // the last one; before the first, when the app was created
  TimeNs quiet_ns = 0;    // quiet time is credited up to here
};

// A first query, or several at once, show no rate yet.
inline double GapNs(const TailAccount& account) {
  return account.gap_ns > 0 ? account.gap_ns : kTailSilentNs;
}

// Arrivals a nanosecond over all the time from the first one to `until_ns`, pauses included.
inline double LongRate(const TailAccount& account, TimeNs until_ns) {
  const auto seen_ns = static_cast<double>(until_ns - account.first_arrival_ns);
  return static_cast<double>(account.arrivals) / std::max(seen_ns, kLoadForgottenNs);
}

inline bool IsQuiet(const TailAccount& account, TimeNs now_ns) {
  return account.arrivals > 0 &&
         static_cast<double>(now_ns - account.arrival_ns) > kLoadForgottenNs;
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

inline void NoteQuery(TailAccount& account, const Promise& promise, int64_t latency_ns,
                      bool met_credit) {
  const int64_t limit_ns = promise.LatencyLimit();
  const bool late = latency_ns > limit_ns;
  ++account.queries;
  // Without a known limit nothing shows what the app's own queue leaves.
  const bool known = limit_ns != kNever;
  const double earned =
      known ? std::max(kTailShare - account.late_share, kTailShareMin) : kTailShareUnknown;
  const double repaid = std::min(earned, account.advance);
  account.advance -= repaid;
  AddCredit(account, earned - repaid);
  if (met_credit) {
    const bool spends = late || !known;
    if (spends) account.credit = std::max(account.credit - 1, -kTailDebtMax);
    account.late_for_be += spends ? 1 : 0;
    return;
  }
  const auto weight =
      static_cast<double>(std::min(account.queries + kTailShareQueries, kTailShareWindow));
  account.late_share += ((late ? 1.0 : 0.0) - account.late_share) / weight;
}

// Queries are late by another limit from now on: neither credit, debt nor lateness of before
// counts. The arrivals are what they were.
inline void BeginAnew(TailAccount& account, TimeNs now_ns) {
  account.credit = account.advance = 0;
  account.late_share = kLateOfP99;
  account.queries = std::min<int64_t>(account.queries, 1);  // it is not silent (IsSilent)
  account.quiet_ns = now_ns;
}

// A pause between two queries of a loaded app is no quiet time.
inline void CreditQuietTime(TailAccount& account, TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) return;
  const TimeNs begin_ns =
      std::max(account.quiet_ns, account.arrival_ns + static_cast<int64_t>(kLoadForgottenNs));
  const double missed = LongRate(account, now_ns) * static_cast<double>(now_ns - begin_ns);
  const double before = account.credit;
  AddCredit(account, kTailShare * missed);
  account.advance += account.credit - before;
  account.quiet_ns = now_ns;
}

// Queries that a blocking of one nanosecond is likely to delay, on a device with this LC load:
// those that arrive in it, and until the queue that it leaves is empty again. In quiet time the
// last gaps say nothing of when the next query comes.
inline double TailNeedPerNs(const TailAccount& account, double load, TimeNs now_ns) {
  const double rate = IsQuiet(account, now_ns) ? LongRate(account, now_ns) : 1 / GapNs(account);
  return rate / (1 - std::clamp(load, 0.0, kQueueLoadMax));
}

// Whether no query of the app has ever ended. It then holds no BE work, but for a moment after its
// creation. A first query that runs closes LC's places by itself; one that waits for the ticket of
// a BE task must not hold that task.
inline bool IsSilent(const TailAccount& account, TimeNs now_ns) {
  return account.queries == 0 && (account.arrivals > 0 || now_ns - account.arrival_ns >=
                                                              static_cast<int64_t>(kTailSilentNs));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_TAIL_ACCOUNT_H_
