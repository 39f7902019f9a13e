// Shift: by how much would this work, arranged so, move an LC app's p99, and is that allowed?
//
// A query that begins a busy period beside BE work waits for W, and so does all of that period:
//
//   eviction    a fixed W: each such query waits as long as BE work takes to leave
//   uncuttable  a uniform W: the rest of launches that nothing evicts (queueing/vacation.h)
//
// With a tail that falls at the rate eta, and BE work in a share q of the idle periods, drawn
// independently, the p99 moves by
//
//   shift = ln(1 - q + q E[exp(eta W)]) / eta
//
// so the largest share that keeps a shift of B is q = (exp(eta B) - 1) / (E[exp(eta W)] - 1); from
// 1 on, the work may start in each idle period. An exponential tail reaches down to the median at
// most. Where W makes all queries late that are slower than the median, q F <= 1 / 100 too. F is
// the share of those that wait and are late. Periodic arrivals have only this limit. Where the tail
// is unknown, W itself must fit.
//
// An app that works in steps has a query behind each gap. Such a query is expected: what delays it
// by more than kBoundShareOfSplit of the budget does not start: each step pays for it, errors too,
// and one that is late costs BE work its silences. Work in a silence delays the query that ends the
// silence, and no step behind it. That query may be late in a share of the silences, q F again.
//
// In a lull a delay that makes hardly any query late may end each idle period.
//
// What no share allows may start on credit: of the queries that may be late, those that are left.
// A split moves a p99 by its queue instead (value.h). Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_SHIFT_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_SHIFT_H_

#include <array>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// What a query that begins a busy period may wait for.
struct Delay {
  int64_t eviction_ns = 0;    // what the longest eviction adds to it
  int64_t uncuttable_ns = 0;  // of launches that nothing evicts, one after the other

  int64_t total_ns() const { return SumNs(eviction_ns, uncuttable_ns); }
  bool operator==(const Delay&) const = default;
};

// What one LC app with a blocking budget allows.
class ShiftLimit {
 public:
  explicit ShiftLimit(const LcAppView& app);

  // How far its p99 moves where each idle period ends with the delay.
  int64_t ShiftOf(Delay delay) const;
  // The share of idle periods that may end with it; 1: all. All or nothing where the tail is
  // unknown.
  double ShareOf(Delay delay) const;
  // Takes the other limit in, where the same share keeps both but for the delay that makes late.
  bool Covers(const ShiftLimit& other);

 private:
  double Exponent(Delay delay) const;
  double ShareOfSilences(Delay delay) const;
  double ShareOfPeriods(Delay delay) const;
  double LateShare(Delay delay) const;

  int64_t budget_ns_;
  int64_t late_delay_ns_;
  int64_t lull_delay_ns_;
  double first_late_max_;
  double tail_rate_;
  double allowed_;        // eta B
  double delay_allowed_;  // exp(eta B) - 1
};

// What the tail accounts say to BE work that a query may wait for.
struct Credit {
  bool covered = true;  // every app whose budget is shorter has the credit
  // Of the app that lacks most, in queries. need 0: it has no account.
  double need = 0;
  double credit = 0;
};
Credit CreditFor(const Snapshot& snapshot, int64_t blocking_ns);

// The answers for all LC apps. They are kept while the tails and budgets stay as they are, credits
// while the accounts do too: plans ask again and again for the same few kernels, and each answer
// takes exponential functions for each LC app.
//
//   shifts.Follow(snapshot);   // each plan
//   shifts.ShareOf(delay);
class Shifts {
 public:
  void Follow(const Snapshot& snapshot) {
    if (!IsOf(snapshot)) Renew(snapshot);
    FollowAccounts(snapshot);
  }
  // The least share of all LC apps; below kIdleShareMin it counts as none, because so rare a launch
  // is for the tail account.
  double ShareOf(Delay delay) {
    if (delay.uncuttable_ns == 0 && delay.eviction_ns <= least_budget_ns_) return 1;
    return AnswerTo(delay).share;
  }
  // Of the LC app that moves most.
  int64_t ShiftOf(Delay delay) {
    return delay.uncuttable_ns == 0 ? delay.eviction_ns : AnswerTo(delay).shift_ns;
  }
  // CreditFor in the snapshot that they follow.
  const Credit& CreditOf(const Snapshot& snapshot, int64_t blocking_ns);

 private:
  struct Answer {
    Delay delay;
    double share;
    int64_t shift_ns;
  };
  // What of an LC app the answers depend on.
  struct AppTerm {
    int64_t budget_ns;
    int64_t late_delay_ns;
    int64_t lull_delay_ns;
    double first_late_max;
    double tail_rate;
    bool operator==(const AppTerm&) const = default;
  };
  // What of an LC app the credits depend on, beside its budget.
  struct Account {
    double credit;
    double need_per_ns;
    bool has_load;
    bool operator==(const Account&) const = default;
  };
  static constexpr int kBits = std::bit_width(size_t{kMaxHeads}) - 1;  // an answer a head

  static AppTerm TermOf(const LcAppView& app) {
    return {app.blocking_budget_ns, app.late_delay_ns, app.lull_delay_ns, app.first_late_max,
            app.tail_rate};
  }
  static Account AccountOf(const LcAppView& app) {
    return {app.tail_credit, app.tail_need_per_ns, HasLoad(app)};
  }
  bool IsOf(const Snapshot& snapshot) const;
  void Renew(const Snapshot& snapshot);
  void FollowAccounts(const Snapshot& snapshot);
  void AddLimit(const LcAppView& app);
  static size_t SlotOf(int64_t key) {
    constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
    return static_cast<uint64_t>(key) * kMix >> (std::numeric_limits<uint64_t>::digits - kBits);
  }
  const Answer& AnswerTo(Delay delay);
  Answer Find(Delay delay) const;

  BoundedList<AppTerm, kMaxApps> apps_;
  BoundedList<ShiftLimit, kMaxApps> limits_;
  int64_t least_budget_ns_ = kNever;
  std::bitset<(size_t{1} << kBits)> known_;  // by answer
  std::array<Answer, size_t{1} << kBits> answers_;
  struct KnownCredit {
    int64_t blocking_ns;
    Credit credit;
  };
  BoundedList<Account, kMaxApps> accounts_;
  std::bitset<(size_t{1} << kBits)> known_credits_;  // by answer
  std::array<KnownCredit, size_t{1} << kBits> credits_;
};

// Whether one plan may launch BE work that delays queries so.
//
// The present idle period is one of a share of them or not: a hash of the instant at which it began
// says so. Plans of one period agree, and a replay draws the same.
class Shift {
 public:
  // `shifts` follow the snapshot.
  Shift(const Snapshot& snapshot, Shifts& shifts);

  const Credit& CreditFor(int64_t blocking_ns) const {
    return shifts_.CreditOf(snapshot_, blocking_ns);
  }
  // Of the idle periods, those that may end with it.
  double ShareOf(Delay delay) const { return shifts_.ShareOf(delay); }
  // In each idle period.
  bool Allows(Delay delay) const { return shifts_.ShareOf(delay) >= 1; }
  // In this idle period.
  bool AllowsNow(Delay delay) const { return IsOneOf(shifts_.ShareOf(delay)); }
  // Whether the present idle period is one of a share of them.
  bool IsOneOf(double share) const {
    if (share <= 0 || share >= 1) return share >= 1;
    return draw_ < share;
  }
  // Whether the delay meets the tails of all LC apps that limit BE work, so that it moves their p99
  // by its mean. A random arrival's tail is assumed of an app that has shown none yet.
  bool IsInTails(int64_t delay_ns) const { return delay_ns <= longest_in_tails_ns_; }
  // How far the p99 that moves most would move, and the least that one may.
  int64_t ShiftOf(Delay delay) const { return shifts_.ShiftOf(delay); }
  int64_t limit_ns() const { return limit_ns_; }
  // Whether an app expects a query that the delay would move too far. Until gap_until_ns().
  bool MeetsExpected(Delay delay) const { return delay.total_ns() > gap_budget_ns_; }
  TimeNs gap_until_ns() const { return gap_until_ns_; }
  // The longest launch that nothing evicts.
  int64_t longest_uncuttable_ns() const { return longest_uncuttable_ns_; }

 private:
  const Snapshot& snapshot_;
  Shifts& shifts_;
  int64_t limit_ns_ = kNever;
  int64_t longest_uncuttable_ns_ = kNever;
  int64_t longest_in_tails_ns_ = kNever;
  int64_t gap_budget_ns_ = kNever;
  TimeNs gap_until_ns_ = 0;
  double draw_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_SHIFT_H_
