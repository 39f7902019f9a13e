// How far delays move the p99 of LC apps, and which are allowed (shift.h).

#include "src/core/policies/adaptive/arrangement/shift.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/random.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/first_late.h"
#include "src/core/queueing/queue_tail.h"
#include "src/core/queueing/vacation.h"

namespace gpushare::core {
ShiftLimit::ShiftLimit(const LcAppView& app)
    : budget_ns_(app.blocking_budget_ns),
      late_delay_ns_(app.late_delay_ns),
      lull_delay_ns_(app.lull_delay_ns),
      first_late_max_(app.first_late_max),
      tail_rate_(app.tail_rate),
      allowed_(tail_rate_ * static_cast<double>(budget_ns_)),
      delay_allowed_(std::expm1(allowed_)) {}

// ln E[exp(eta W)]
double ShiftLimit::Exponent(Delay delay) const {
  return tail_rate_ * static_cast<double>(delay.eviction_ns) +
         ShiftOfVacation(tail_rate_ * static_cast<double>(delay.uncuttable_ns));
}

int64_t ShiftLimit::ShiftOf(Delay delay) const {
  const int64_t total_ns = delay.total_ns();
  if (!(tail_rate_ > 0) || total_ns >= kNever / 2) return total_ns;
  return static_cast<int64_t>(std::ceil(Exponent(delay) / tail_rate_));
}

double ShiftLimit::ShareOf(Delay delay) const {
  if (delay.total_ns() <= lull_delay_ns_) return 1;
  return std::max(ShareOfSilences(delay), ShareOfPeriods(delay));
}

double ShiftLimit::ShareOfSilences(Delay delay) const {
  if (first_late_max_ <= 0) return 0;
  const double share =
      LateOfFirst(delay.eviction_ns, delay.uncuttable_ns, budget_ns_, late_delay_ns_);
  return share <= first_late_max_ ? 1 : first_late_max_ / share;
}

double ShiftLimit::ShareOfPeriods(Delay delay) const {
  if (!(tail_rate_ > 0)) return delay.total_ns() <= budget_ns_ ? 1 : 0;
  const double exponent = Exponent(delay);
  if (exponent <= allowed_) return 1;
  if (allowed_ <= 0) return 0;
  const double share = delay_allowed_ / std::expm1(exponent);
  const double late = LateShare(delay);
  return late > 0 ? std::min(share, kLateOfP99 / late) : share;
}

// At least so many of the queries that wait are late. A residual is uniform.
double ShiftLimit::LateShare(Delay delay) const {
  constexpr double kAboveMedian = 1.0 / 2;
  const int64_t beyond_ns = delay.eviction_ns - late_delay_ns_ + delay.uncuttable_ns;
  if (beyond_ns <= 0) return 0;
  if (beyond_ns >= delay.uncuttable_ns) return kAboveMedian;
  return kAboveMedian * static_cast<double>(beyond_ns) / static_cast<double>(delay.uncuttable_ns);
}

bool ShiftLimit::Covers(const ShiftLimit& other) {
  if (budget_ns_ != other.budget_ns_ || tail_rate_ != other.tail_rate_) return false;
  late_delay_ns_ = std::min(late_delay_ns_, other.late_delay_ns_);
  lull_delay_ns_ = std::min(lull_delay_ns_, other.lull_delay_ns_);
  first_late_max_ = std::min(first_late_max_, other.first_late_max_);
  return true;
}

bool Shifts::IsOf(const Snapshot& snapshot) const {
  if (static_cast<size_t>(apps_.size()) != snapshot.lc_apps.size()) return false;
  for (int a = 0; a < apps_.size(); ++a) {
    if (apps_[a] != TermOf(snapshot.lc_apps[static_cast<size_t>(a)])) return false;
  }
  return true;
}

void Shifts::Renew(const Snapshot& snapshot) {
  known_.reset();
  known_credits_.reset();
  limits_.Clear();
  apps_.Clear();
  least_budget_ns_ = MinBlockingBudget(snapshot);
  for (const LcAppView& app : snapshot.lc_apps) {
    apps_.Add(TermOf(app));
    AddLimit(app);
  }
}

void Shifts::FollowAccounts(const Snapshot& snapshot) {
  const bool same = std::equal(
      accounts_.begin(), accounts_.end(), snapshot.lc_apps.begin(), snapshot.lc_apps.end(),
      [](const Account& account, const LcAppView& app) { return account == AccountOf(app); });
  if (same) return;
  known_credits_.reset();
  accounts_.Clear();
  for (const LcAppView& app : snapshot.lc_apps) accounts_.Add(AccountOf(app));
}

// Of apps with the same bound and tail, the one whose queries are late soonest is the limit.
void Shifts::AddLimit(const LcAppView& app) {
  if (app.blocking_budget_ns == kNever) return;
  const ShiftLimit limit(app);
  for (ShiftLimit& other : limits_) {
    if (other.Covers(limit)) return;
  }
  limits_.Add(limit);
}

const Shifts::Answer& Shifts::AnswerTo(Delay delay) {
  const size_t at = SlotOf(delay.eviction_ns ^ (delay.uncuttable_ns << 1));
  Answer& answer = answers_[at];
  if (!known_[at] || answer.delay != delay) {
    known_.set(at);
    answer = Find(delay);
  }
  return answer;
}

const Credit& Shifts::CreditOf(const Snapshot& snapshot, int64_t blocking_ns) {
  const size_t at = SlotOf(blocking_ns);
  KnownCredit& known = credits_[at];
  if (!known_credits_[at] || known.blocking_ns != blocking_ns) {
    known_credits_.set(at);
    known = {blocking_ns, CreditFor(snapshot, blocking_ns)};
  }
  return known.credit;
}

Shifts::Answer Shifts::Find(Delay delay) const {
  Answer answer = {delay, 1, limits_.empty() ? delay.total_ns() : 0};
  for (const ShiftLimit& limit : limits_) {
    if (answer.share > 0) answer.share = std::min(answer.share, limit.ShareOf(delay));
    if (answer.share < kIdleShareMin) answer.share = 0;
    answer.shift_ns = std::max(answer.shift_ns, limit.ShiftOf(delay));
  }
  return answer;
}

// A task needs what one late query spends, at least. Less let a training step start on 0.05, and
// late queries come several at once: ten rows at load 0.3 had a mean p99 of 1.052, and 1.044 with
// this alone (about one standard error). A new account earns it in some 1,000 queries. An app
// without a load has no queue in which several are late.
Credit CreditFor(const Snapshot& snapshot, int64_t blocking_ns) {
  Credit answer;
  for (const LcAppView& app : snapshot.lc_apps) {
    if (blocking_ns <= app.blocking_budget_ns) continue;
    const double delayed = app.tail_need_per_ns * static_cast<double>(blocking_ns);
    const double least = HasLoad(app) ? 1 : 0;
    const double need = delayed > 0 ? std::clamp(delayed, least, kTailCreditMax) : 0;
    if (need > 0 && app.tail_credit >= need) continue;
    if (answer.covered || need - app.tail_credit > answer.need - answer.credit) {
      answer = {false, need, app.tail_credit};
    }
  }
  return answer;
}

Shift::Shift(const Snapshot& snapshot, Shifts& shifts) : snapshot_(snapshot), shifts_(shifts) {
  TimeNs began_ns = 0;
  for (const LcAppView& app : snapshot.lc_apps) {
    began_ns = std::max(began_ns, app.idle_since_ns);
    limit_ns_ = std::min(limit_ns_, app.blocking_budget_ns);
    longest_uncuttable_ns_ = std::min(longest_uncuttable_ns_, app.LongestUncuttable());
    if (app.blocking_budget_ns == kNever) continue;
    if (app.active_queries == 0 && app.expected_by_ns > snapshot.now_ns) {
      const auto budget_ns = static_cast<double>(app.blocking_budget_ns);
      gap_budget_ns_ =
          std::min(gap_budget_ns_, static_cast<int64_t>(kBoundShareOfSplit * budget_ns));
      gap_until_ns_ = std::max(gap_until_ns_, app.expected_by_ns);
    }
    longest_in_tails_ns_ =
        std::min(longest_in_tails_ns_, app.tail_rate > 0 ? app.late_delay_ns : 0);
  }
  draw_ = Random(static_cast<uint64_t>(began_ns)).Uniform();
}

}  // namespace gpushare::core
