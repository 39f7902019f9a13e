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
// at least, however long it is. Credit that is put aside for quiet time is not part of it.
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
// How often pauses end depends on their age (pause_ages.h). Cheap time is where they end no more
// often than twice the mean. Elsewhere, and beside a load, the credit stays for it. So BE work has
// most of pauses that are about as long as each other, and is gone before they end.
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
#include "src/core/evidence/pause_ages.h"
#include "src/core/evidence/slack_share.h"
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
  int64_t pauses = 0;     // that have ended
  int64_t paused_ns = 0;  // in all of them
  PauseAges ages = {};
  int64_t queries = 0;      // ended
  int64_t late_for_be = 0;  // of these, late and met a task on credit
  TimeNs first_arrival_ns = 0;
  TimeNs arrival_ns = 0;      // the last one; before the first, when the app was created
  TimeNs returned_ns = 0;     // the one that ended the last pause
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

// Whether the load came back so short a time ago that little is known of it.
inline bool LoadIsNew(const TailAccount& account) {
  return account.pauses > 0 &&
         static_cast<double>(account.arrival_ns - account.returned_ns) < kLoadForgottenNs;
}

inline void NoteArrival(TailAccount& account, TimeNs now_ns) {
  const int64_t gap_ns = std::max<int64_t>(0, now_ns - account.arrival_ns);
  if (account.arrivals == 0) {
    account.first_arrival_ns = now_ns;
  } else if (IsQuiet(account, now_ns)) {
    ++account.pauses;
    account.paused_ns += gap_ns;
    account.ages.Add(static_cast<double>(gap_ns));
    account.gaps = 0;
    account.returned_ns = now_ns;
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

// `solo_ns`: of a query alone, 0 unknown.
inline void NoteQuery(TailAccount& account, const Promise& promise, int64_t solo_ns,
                      int64_t latency_ns, bool met_credit) {
  const int64_t limit_ns = promise.LatencyLimit();
  const bool late = latency_ns > limit_ns;
  ++account.queries;
  // Without a known limit nothing shows what the app's own queue leaves.
  const bool known = limit_ns != kNever;
  account.earned =
      known ? std::max(kTailShare - account.late_share, kTailShareMin) : kTailShareUnknown;
  // Beside a load that has a lull the load is expected back.
  const double earned =
      known ? LeftOfLate(kTailShare, account.late_share, promise, solo_ns) : account.earned;
  const double repaid = std::min(earned, account.advance);
  account.advance -= repaid;
  AddCredit(account, earned - repaid);
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
  double age_ns = 0;          // of the pause
  double returns = 1;         // the load does; 1, or less where the pause outlasts all before
  double delayed_per_ns = 0;  // queries that a delay of one nanosecond delays, beyond the first
  double late_most = 1;       // all between two pauses
  double late_ns = 0;         // a delay beyond it makes a query late

  // Queries that are late if the load returns, on average. It meets the end of a blocking, all of
  // it at most.
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
  double rate = 1 / GapNs(account);
  double load = std::min(rate * static_cast<double>(solo_ns), kQueueLoadMax);
  if (account.pauses == 0 && load > 0) {
    rate *= kQueueLoadMax / load;
    load = kQueueLoadMax;
  }
  const auto bursts = static_cast<double>(account.pauses + 1);
  return {.age_ns = age_ns,
          .returns = std::sqrt(std::min(1.0, SeenNs(account) / age_ns)),
          .delayed_per_ns = rate / (1 - load),
          .late_most = std::max(1.0, static_cast<double>(account.arrivals) / bursts),
          .late_ns = static_cast<double>(account.late_delay_ns)};
}

// What tasks in quiet time put aside: the chance that the load returns while they run, times the
// late ones that are not covered.
class QuietCost {
 public:
  QuietCost(const TailAccount& account, const QuietRisk& risk)
      : account_(account), risk_(risk), covered_(account.aside) {
    while (risk.age_ns >= PauseAges::End(range_)) NextRange();
  }

  // Where the load returns for certain, and no late one is covered.
  QuietCost Certain() const {
    QuietCost cost = *this;
    cost.ends_ = 1 / risk_.returns;
    cost.covered_ = 0;
    return cost;
  }

  double Of(double blocking_ns) {
    while (blocking_ns > RangeLeftNs()) NextRange();
    return Here(blocking_ns);
  }

  // The longest blocking that costs `credit`, to a millionth. The cost rises with the length.
  double Longest(double credit) {
    while (range_ + 1 < PauseAges::kRanges && Here(RangeLeftNs()) <= credit) NextRange();
    double least_ns = begin_ns_;
    double most_ns = RangeLeftNs();
    while (most_ns - least_ns > std::max(1.0, most_ns / 1'000'000)) {
      const double middle_ns = (least_ns + most_ns) / 2;
      (Here(middle_ns) <= credit ? least_ns : most_ns) = middle_ns;
    }
    return least_ns;
  }

 private:
  double RangeLeftNs() const { return PauseAges::End(range_) - risk_.age_ns; }
  // Of a blocking that ends in the range.
  double Here(double blocking_ns) const {
    const double ends = ends_ + account_.ages.Rate(range_) * (blocking_ns - begin_ns_);
    return std::min(1.0, ends * risk_.returns) * std::max(0.0, risk_.Late(blocking_ns) - covered_);
  }
  void NextRange() {
    const double left_ns = std::max(0.0, RangeLeftNs());
    ends_ += account_.ages.Rate(range_) * (left_ns - begin_ns_);
    begin_ns_ = left_ns;
    ++range_;
  }

  const TailAccount& account_;
  const QuietRisk& risk_;
  double covered_;
  int range_ = 0;
  double ends_ = 0;      // chance that the load returns before the range
  double begin_ns_ = 0;  // of the range, from now on
};

inline void PutAside(TailAccount& account, int64_t blocking_ns, int64_t solo_ns, TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) return;
  const QuietRisk risk = QuietRiskOf(account, solo_ns, now_ns);
  account.hit = risk.Late(static_cast<double>(blocking_ns));
  account.aside += QuietCost(account, risk).Of(static_cast<double>(blocking_ns));
  account.aside = std::clamp(account.aside, 0.0, std::max(0.0, account.credit));
}

// Whether pauses of this age end no more often than twice the mean, or the queries between two
// pauses earn a hit. At other times a task buys little BE work with its credit.
inline bool IsCheapTime(const TailAccount& account, TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) return false;
  const auto bursts = static_cast<double>(account.pauses + 1);
  if (account.earned * static_cast<double>(account.arrivals) >= account.hit * bursts) return true;
  const int range = PauseAges::RangeOf(static_cast<double>(now_ns - account.arrival_ns));
  return account.ages.Rate(range) * static_cast<double>(account.paused_ns) <=
         2 * static_cast<double>(account.pauses);
}

// What a task may start on. Beside a load the credit of a hit stays for the pauses, but for what a
// full account has for one query: a hit may need more than any account has. Where a pause is likely
// to end, a full account does not do either, but for tasks that make few queries late.
inline double CreditAt(const TailAccount& account, TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) {
    const double kept = std::max(account.aside, account.hit);
    return account.credit - std::min(kept, kTailCreditMax - 1);
  }
  if (IsCheapTime(account, now_ns)) return account.credit;
  return std::min(account.credit, kTailCreditMax - 1);
}

// Credit that a task needs for each nanosecond that it blocks.
inline double TailNeedPerNs(const TailAccount& account, double load, int64_t solo_ns,
                            TimeNs now_ns) {
  if (!IsQuiet(account, now_ns)) {  // of a load that is new the largest one counts
    return DelayedPerNs(account, LoadIsNew(account) ? kQueueLoadMax : load);
  }
  const QuietRisk risk = QuietRiskOf(account, solo_ns, now_ns);
  const double credit = CreditAt(account, now_ns);
  if (credit <= 0) return risk.delayed_per_ns;
  QuietCost cost(account, risk);
  const double longest_ns = IsCheapTime(account, now_ns)
                                ? cost.Longest(std::max(0.0, credit - account.aside))
                                : cost.Certain().Longest(credit / kTailCreditMax);
  return credit / std::max(longest_ns, 1.0);
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
