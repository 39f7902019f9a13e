// The vacation account of an LC app: how long a single launch of BE work that nothing evicts may
// be.
//
// The budget for such work (queueing/vacation.h) takes launches of one length that fill all idle
// time. Most work is shorter, or leaves idle time, and then a longer launch may run now and then.
// A query arrives at a random instant of the idle time, so what may be is an average over it. With
// s the shift that the bound allows, and W what a query may wait for:
//
// - idle time of t saves t (exp(eta s) - 1);
// - BE work that runs for t takes t (E[exp(eta W)] - 1).
//
// So all of it together moves the p99 by no more than s. W is the eviction of what leaves, and
// uniform up to the length of what does not. Work on credit is for the tail account
// (tail_account.h).
//
// The account keeps what kVacationSavedNs of idle time saves, and as much debt. A pause of the load
// saves nothing and costs nothing: few queries arrive in it. Where the tail is unknown nothing is
// saved, and what was stays. What the model gets wrong makes queries late, and the part of the
// slack that plans may use falls (slack_share.h).
//
// Sequence: SaveIdleTime where an idle time may end and before the account is read; FollowTail when
// the tail or the slack was estimated. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_VACATION_ACCOUNT_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_VACATION_ACCOUNT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/queueing/vacation.h"

namespace gpushare::core {

struct VacationAccount {
  double saved_ns = 0;
  double saves = 0;        // of a nanosecond of idle time; 0: nothing
  double tail_rate = 0;    // eta, 1 / ns; 0: unknown
  TimeNs counted_ns = 0;   // idle time up to here is saved
  double asked_ns = -1;    // what was saved when longest_ns was asked for last
  int64_t longest_ns = 0;  // one launch of all of it
};

// While the tail is unknown nothing changes.
inline void Change(VacationAccount& account, double by_ns) {
  const double most_ns = account.saves * kVacationSavedNs;
  if (most_ns <= 0) return;
  account.saved_ns = std::clamp(account.saved_ns + by_ns, -most_ns, most_ns);
}

// The longest launch that what is saved pays for, to a hundredth: plans ask for it.
inline int64_t LongestOf(VacationAccount& account) {
  if (!(account.saved_ns > 0) || !(account.tail_rate > 0)) return 0;
  if (std::abs(account.saved_ns - account.asked_ns) <= account.saved_ns / 64) {
    return account.longest_ns;
  }
  account.asked_ns = account.saved_ns;
  account.longest_ns = static_cast<int64_t>(LongestOfCost(account.saved_ns, account.tail_rate));
  return account.longest_ns;
}

// The app had no active query since `idle_since_ns`.
inline void SaveIdleTime(VacationAccount& account, TimeNs idle_since_ns, TimeNs until_ns) {
  const TimeNs begin_ns = std::max(account.counted_ns, idle_since_ns);
  if (until_ns <= begin_ns) return;
  account.counted_ns = until_ns;
  Change(account, static_cast<double>(until_ns - begin_ns) * account.saves);
}

// The tail of the app's latencies, and the shift that its bound allows. 0: the tail is unknown.
inline void FollowTail(VacationAccount& account, double tail_rate, int64_t shift_ns) {
  const double saves =
      tail_rate > 0 && shift_ns > 0
          ? std::expm1(std::min(kVacationExponentMax, tail_rate * static_cast<double>(shift_ns)))
          : 0;
  if (saves == account.saves && tail_rate == account.tail_rate) return;
  account.saves = saves;
  account.tail_rate = tail_rate;
  account.asked_ns = -1;
  Change(account, 0);
}

// BE work has run for `took_ns`. A query that came waited for `fixed_ns`, and for a uniform rest of
// up to `uniform_ns`.
inline void TakeVacation(VacationAccount& account, int64_t fixed_ns, int64_t uniform_ns,
                         int64_t took_ns) {
  const double exponent = account.tail_rate * static_cast<double>(fixed_ns) +
                          ShiftOfVacation(account.tail_rate * static_cast<double>(uniform_ns));
  Change(account,
         -std::expm1(std::min(kVacationExponentMax, exponent)) * static_cast<double>(took_ns));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_VACATION_ACCOUNT_H_
