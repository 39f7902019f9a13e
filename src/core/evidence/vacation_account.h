// The vacation account of an LC app: how long a single launch of BE work that nothing evicts may
// be.
//
// The budget for such work (queueing/vacation.h) takes launches of one length that fill all idle
// time. Most work is shorter, or leaves idle time, and then a longer launch may run now and then.
// What may be is an average over the idle time, since a query arrives at a random instant of it:
//
//   idle time passes                + its length x (exp(eta s) - 1), s the shift that the bound
//   allows a launch of B runs in it        - CostOfVacation(B) a region of several launches    -
//   its length x (E[exp(eta U)] - 1), U up to what it declared
//
// So all of it together moves the p99 by no more than s. The account keeps what kVacationSavedNs of
// idle time saves. A pause of the load saves nothing: few queries arrive in it. Where the tail is
// unknown nothing is saved. What the model gets wrong makes queries late, and the part of the slack
// that plans may use falls (slack_share.h).
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

  double Most() const { return saves * kVacationSavedNs; }
};

inline void Change(VacationAccount& account, double by_ns) {
  const double most_ns = account.Most();
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
      tail_rate > 0 ? std::expm1(std::min(30.0, tail_rate * static_cast<double>(shift_ns))) : 0;
  if (saves == account.saves && tail_rate == account.tail_rate) return;
  account.saves = std::max(0.0, saves);
  account.tail_rate = tail_rate;
  account.asked_ns = -1;
  Change(account, 0);
}

// A single launch begins, which is expected to take so long.
inline void BeginVacation(VacationAccount& account, int64_t length_ns) {
  Change(account, -CostOfVacation(static_cast<double>(length_ns), account.tail_rate));
}

// It has ended, and took another time.
inline void EndVacation(VacationAccount& account, int64_t length_ns, int64_t took_ns) {
  Change(account, CostOfVacation(static_cast<double>(length_ns), account.tail_rate) -
                      CostOfVacation(static_cast<double>(took_ns), account.tail_rate));
}

// A region of several launches has ended, of which a query never met more than `bound_ns`.
inline void TakeRegion(VacationAccount& account, int64_t bound_ns, int64_t took_ns) {
  if (bound_ns <= 0) return;
  const auto length_ns = static_cast<double>(bound_ns);
  Change(account,
         -CostOfVacation(length_ns, account.tail_rate) / length_ns * static_cast<double>(took_ns));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_VACATION_ACCOUNT_H_
