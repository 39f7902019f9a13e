// The tail account of an LC app: how many queries BE work may still make late.
//
// The bound is on the p99, so one query in a hundred may be late. What the app's own queue leaves
// of that hundredth is credit; each query that a task on credit made late spends one:
//
//   a query ends            + kTailShare - share of late queries that met no task on credit
//   quiet time              + what a query earned last, for each that would have arrived in it
//   late, met such a task   - 1, down to a debt of kTailDebtMax
//
// A task on credit is BE work that blocks longer than the app's budget and starts while no query is
// active. A query meets it if it arrives while the task runs, or in the busy period that this
// begins. Late is a latency above the promise's limit; where that is unknown, every query that met
// the task counts.
//
// Beside a load, a task starts with credit for all queries that it is likely to delay, and for one
// at least, however long it is. What a hit in quiet time costs does not count there.
//
// Quiet time begins after a pause of kLoadForgottenNs. What it earns is an advance on the queries
// that come after it: what these earn repays it first. So arrivals in bursts earn no more than a
// steady load.
//
// In quiet time a query seldom meets a task, and then many queries are late. So a task puts aside
// what it makes late on average, out of the credit that is not yet put aside. Late queries spend
// what was put aside first. Once that covers a whole hit, further tasks cost nothing. So BE work
// has an even share of each pause, and the late ones come to what was earned.
//
// A pause longer than all the time before it says that the load may have ended. A hit is then less
// likely, by the root of the ratio, and a debt fades: two queries do not hold BE work for hours.
//
// Sequence: NoteArrival when a query becomes active, NoteQuery when it ends, CreditQuietTime before
// the credit is read, PutAside when a task starts on credit. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_TAIL_ACCOUNT_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_TAIL_ACCOUNT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/promise/promise.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {

struct TailAccount {
  double credit = 0;               // queries
  double aside = 0;                // of it, put aside for hits in quiet time
  double hit = 0;                  // late ones, if the last task in quiet time is met
  double advance = 0;              // earned by quiet time and not yet by queries
  double late_share = kLateOfP99;  // of the queries that met no task on credit
  double earned = kTailShareMin;   // by the last query
  double gap_ns = 0;               // mean time between the last arrivals since a pause
  int64_t gaps = 0;                // of it
  int64_t arrivals = 0;
  int64_t pauses = 0;       // that have ended
  int64_t paused_ns = 0;    // in all of them
  int64_t queries = 0;      // ended
  int64_t late_for_be = 0;  // of these, late and met a task on credit
  TimeNs first_arrival_ns = 0;
  TimeNs arrival_ns = 0;      // the last one; before the first, when the app was created
  TimeNs quiet_ns = 0;        // quiet time is credited up to here
  int64_t late_delay_ns = 0;  // a delay that makes half of the queries late; 0: unknown
};

// A first query, or several at once, show no rate yet.
inline double GapNs(const TailAccount& account) {
  return account.gap_ns > 0 ? account.gap_ns : kTailSilentNs;
}

// The time from the first arrival to the last one.
inline double SeenNs(const TailAccount& account) {
  const auto seen_ns = static_cast<double>(account.arrival_ns - account.first_arrival_ns);
  return std::max(seen_ns, kLoadForgottenNs);
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

// Whether it is quiet now, or was for most of the time.
inline bool IsMostlyQuiet(const TailAccount& account, TimeNs now_ns) {
  return IsQuiet(account, now_ns) || 2 * static_cast<double>(account.paused_ns) > SeenNs(account);
}

inline void NoteArrival(TailAccount& account, TimeNs now_ns) {
  const int64_t gap_ns = std::max<int64_t>(0, now_ns - account.arrival_ns);
  if (account.arrivals == 0) {
    account.first_arrival_ns = now_ns;
  } else if (IsQuiet(account, now_ns)) {
    ++account.pauses;
    account.paused_ns += gap_ns;
    account.gaps = 0;
  } else {
    account.gaps = std::min(account.gaps + 1, kTailGaps);
    const auto weight = static_cast<double>(account.gaps);
    account.gap_ns += (static_cast<double>(gap_ns) - account.gap_ns) / weight;
  }
  ++account.arrivals;
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
  account.earned =
      known ? std::max(kTailShare - account.late_share, kTailShareMin) : kTailShareUnknown;
  const double repaid = std::min(account.earned, account.advance);
  account.advance -= repaid;
  AddCredit(account, account.earned - repaid);
  if (met_credit) {
    const bool spends = late || !known;
    if (spends) {
      account.credit = std::max(account.credit - 1, -kTailDebtMax);
      account.aside = std::max(account.aside - 1, 0.0);
    }
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
  account.credit = account.aside = account.hit = account.advance = 0;
  account.late_share = kLateOfP99;
  account.earned = kTailShareMin;
  account.queries = std::min<int64_t>(account.queries, 1);  // it is not silent (IsSilent)
  account.quiet_ns = now_ns;
}

// The debt at `now_ns` of one at `begin_ns`, in the same pause. Only a pause that outlasts the time
// before it changes a debt: it fades within this time, and the load that was repays the rest.
inline double DebtLeft(const TailAccount& account, double debt, TimeNs begin_ns, TimeNs now_ns) {
  const double seen_ns = SeenNs(account);
  const auto beyond_ns = [&](TimeNs until_ns) {
    return std::max(0.0, static_cast<double>(until_ns - account.arrival_ns) - seen_ns);
  };
  const double lasted = (beyond_ns(now_ns) - beyond_ns(begin_ns)) / seen_ns;
  const double repaid = kTailShare * static_cast<double>(account.arrivals) * lasted;
  return std::max(0.0, debt * std::exp(-lasted) - repaid);
}

// A pause between two queries of a loaded app is no quiet time.
inline void CreditQuietTime(TailAccount& account, TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) return;
  const TimeNs begin_ns =
      std::max(account.quiet_ns, account.arrival_ns + static_cast<int64_t>(kLoadForgottenNs));
  if (now_ns <= begin_ns) return;
  if (account.credit < 0) account.credit = -DebtLeft(account, -account.credit, begin_ns, now_ns);
  const double missed = LongRate(account, now_ns) * static_cast<double>(now_ns - begin_ns);
  const double before = account.credit;
  AddCredit(account, account.earned * missed);
  account.advance += account.credit - before;
  account.quiet_ns = now_ns;
}

// Queries that a blocking of one nanosecond is likely to delay beside a load: those that arrive in
// it, and until the queue that it leaves is empty again.
inline double DelayedPerNs(const TailAccount& account, double load) {
  return 1 / GapNs(account) / (1 - std::clamp(load, 0.0, kQueueLoadMax));
}

// What quiet time says of a blocking.
struct QuietRisk {
  double hits_per_ns = 0;     // chance that the load comes back
  double delayed_per_ns = 0;  // queries that a delay of one nanosecond delays, beyond the first
  double late_most = 1;       // all between two pauses
  double late_ns = 0;         // a delay beyond it makes a query late

  // Queries that are late on average. The load meets the end of a blocking, all of it at most.
  double Late(double blocking_ns) const {
    const double beyond_ns = std::max(0.0, blocking_ns - late_ns);
    if (beyond_ns <= 0) return 0;
    return beyond_ns / blocking_ns * std::min(1 + delayed_per_ns * beyond_ns / 2, late_most);
  }
};

// The load that returns is that of the last arrivals, of queries of `solo_ns`; the largest one
// before a first return showed it.
inline QuietRisk QuietRiskOf(const TailAccount& account, int64_t solo_ns, TimeNs now_ns) {
  const auto age_ns = static_cast<double>(now_ns - account.arrival_ns);
  const auto pauses = static_cast<double>(account.pauses + 1);
  const double returns = std::sqrt(std::min(1.0, SeenNs(account) / age_ns));
  double rate = 1 / GapNs(account);
  double load = std::min(rate * static_cast<double>(solo_ns), kQueueLoadMax);
  if (account.pauses == 0 && load > 0) {
    rate *= kQueueLoadMax / load;
    load = kQueueLoadMax;
  }
  return {.hits_per_ns = returns * pauses / (static_cast<double>(account.paused_ns) + age_ns),
          .delayed_per_ns = rate / (1 - load),
          .late_most = std::max(1.0, static_cast<double>(account.arrivals) / pauses),
          .late_ns = static_cast<double>(account.late_delay_ns)};
}

// What a task that blocks so long and starts in quiet time puts aside.
inline double ToPutAside(const TailAccount& account, const QuietRisk& risk, double blocking_ns) {
  const double uncovered = std::max(0.0, risk.Late(blocking_ns) - account.aside);
  return risk.hits_per_ns * blocking_ns * uncovered;
}

inline void PutAside(TailAccount& account, int64_t blocking_ns, int64_t solo_ns, TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) return;
  const QuietRisk risk = QuietRiskOf(account, solo_ns, now_ns);
  account.hit = risk.Late(static_cast<double>(blocking_ns));
  account.aside += ToPutAside(account, risk, static_cast<double>(blocking_ns));
  account.aside = std::clamp(account.aside, 0.0, std::max(0.0, account.credit));
}

// The longest blocking whose part the credit that is not put aside has: the larger root of
// hits x blocking x (late - aside) = credit - aside.
inline double LongestInQuiet(const TailAccount& account, const QuietRisk& risk) {
  const double free = std::max(0.0, account.credit - account.aside) / risk.hits_per_ns;
  const double per_ns = risk.delayed_per_ns / 2;
  const double half = (account.aside - 1) / (2 * per_ns);
  const double covered = (account.aside * risk.late_ns + free) / per_ns;
  const double beyond_ns = half + std::sqrt(half * half + covered);
  const double most_ns = (risk.late_most - 1) / per_ns;  // where all are late
  if (beyond_ns <= most_ns) return risk.late_ns + beyond_ns;
  const double uncovered = risk.late_most - account.aside;
  if (uncovered <= 0) return static_cast<double>(kNever);
  return std::max(most_ns + risk.late_ns, (free + risk.late_most * risk.late_ns) / uncovered);
}

// What a task may start on. Beside a load, what a hit costs stays for the pauses: there it buys
// more BE work.
inline double CreditAt(const TailAccount& account, TimeNs now_ns) {
  if (IsQuiet(account, now_ns)) return account.credit;
  return account.credit - std::max(account.aside, account.hit);
}

// Credit that a task needs for each nanosecond that it blocks.
inline double TailNeedPerNs(const TailAccount& account, double load, int64_t solo_ns,
                            TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) return DelayedPerNs(account, load);
  const QuietRisk risk = QuietRiskOf(account, solo_ns, now_ns);
  if (account.credit <= 0) return risk.delayed_per_ns;
  return account.credit / std::max(LongestInQuiet(account, risk), 1.0);
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
