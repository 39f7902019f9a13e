// In which idle periods BE work runs that would move a p99 beyond its bound if it ran in all.
//
// A busy period of the LC apps that begins beside BE work carries its wait W (vacation.h). If BE
// work runs in a share q of the idle periods, drawn independently, the p99 moves by
//
//   ln(1 - q + q E[exp(eta W)]) / eta
//
// so the largest share that keeps a shift of B is q = (exp(eta B) - 1) / (E[exp(eta W)] - 1). That
// holds for an exponential tail, which reaches down to the median at most. Where the wait makes all
// queries late that are slower than the median, q F <= 0.01 too. F is the share of those that wait
// and are late: a p99 leaves one query in a hundred. Periodic arrivals have only this limit. The
// draw is a hash of the instant at which the idle period began: plans of one period agree, and a
// replay draws the same. Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_IDLE_SHARE_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_IDLE_SHARE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/limits.h"
#include "src/core/base/random.h"
#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/queueing/vacation.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// What one LC app with a blocking budget allows.
class IdleLimit {
 public:
  explicit IdleLimit(const LcAppView& app)
      : budget_ns_(app.blocking_budget_ns),
        late_delay_ns_(app.late_delay_ns),
        tail_rate_(app.tail_rate),
        allowed_(tail_rate_ * static_cast<double>(budget_ns_)),
        delay_allowed_(std::expm1(allowed_)) {}

  // For work of which `eviction_ns` is the shift of an eviction, and `fixed_ns` is the length of
  // launches that nothing evicts. All or nothing where the tail is unknown.
  double ShareOf(int64_t eviction_ns, int64_t fixed_ns) const {
    if (!(tail_rate_ > 0)) {
      return eviction_ns <= budget_ns_ - std::min(fixed_ns, kNever / 2) ? 1 : 0;
    }
    constexpr double kExponentMax = 60;
    const double exponent = tail_rate_ * static_cast<double>(eviction_ns) +
                            ShiftOfVacation(tail_rate_ * static_cast<double>(fixed_ns));
    if (exponent <= allowed_) return 1;
    if (exponent > kExponentMax || allowed_ <= 0) return 0;
    constexpr double kLateMost = 0.01;
    const double share = delay_allowed_ / std::expm1(exponent);
    const double late = LateShare(eviction_ns, fixed_ns);
    return late > 0 ? std::min(share, kLateMost / late) : share;
  }
  // Takes the other limit in, where the same share keeps both but for the delay that makes late.
  bool Covers(const IdleLimit& other) {
    if (budget_ns_ != other.budget_ns_ || tail_rate_ != other.tail_rate_) return false;
    late_delay_ns_ = std::min(late_delay_ns_, other.late_delay_ns_);
    return true;
  }

 private:
  // At least so many of the queries that wait are late. A residual is uniform.
  double LateShare(int64_t eviction_ns, int64_t fixed_ns) const {
    constexpr double kAboveMedian = 0.5;
    const int64_t beyond_ns = eviction_ns - late_delay_ns_ + fixed_ns;
    if (beyond_ns <= 0) return 0;
    if (beyond_ns >= fixed_ns) return kAboveMedian;
    return kAboveMedian * static_cast<double>(beyond_ns) / static_cast<double>(fixed_ns);
  }

  int64_t budget_ns_;
  int64_t late_delay_ns_;
  double tail_rate_;
  double allowed_;
  double delay_allowed_;  // exp(eta B) - 1
};

// The least share of all LC apps; below kIdleShareMin it counts as none, because so rare a launch
// is for the tail account. Answers are kept while the tails and budgets stay as they are: plans ask
// again and again for the same few kernels, and each answer takes exponential functions for each LC
// app.
//
//   shares.Follow(snapshot);                    // each plan
//   shares.Of(blocking_ns, 0);
class IdleShares {
 public:
  void Follow(const Snapshot& snapshot) {
    if (IsOf(snapshot)) return;
    known_.fill(0);
    limits_.Clear();
    apps_.Clear();
    for (const LcAppView& app : snapshot.lc_apps) {
      apps_.Add(TermOf(app));
      AddLimit(app);
    }
  }

  double Of(int64_t eviction_ns, int64_t fixed_ns) {
    const uint64_t mixed =
        (static_cast<uint64_t>(eviction_ns) ^ (static_cast<uint64_t>(fixed_ns) << 1)) *
        0x9E3779B97F4A7C15;
    const size_t at = mixed >> (64 - kBits);
    Answer& answer = answers_[at];
    uint64_t& known = known_[at / 64];
    if ((known >> (at % 64) & 1) == 0 || answer.eviction_ns != eviction_ns ||
        answer.fixed_ns != fixed_ns) {
      known |= uint64_t{1} << (at % 64);
      answer = {eviction_ns, fixed_ns, Least(eviction_ns, fixed_ns)};
    }
    return answer.share;
  }

 private:
  struct Answer {
    int64_t eviction_ns;
    int64_t fixed_ns;
    double share;
  };
  // What of an LC app the answers depend on.
  struct AppTerm {
    int64_t budget_ns;
    int64_t late_delay_ns;
    double tail_rate;
    bool operator==(const AppTerm&) const = default;
  };
  static AppTerm TermOf(const LcAppView& app) {
    return {app.blocking_budget_ns, app.late_delay_ns, app.tail_rate};
  }
  static constexpr int kBits = 7;

  bool IsOf(const Snapshot& snapshot) const {
    if (static_cast<size_t>(apps_.size()) != snapshot.lc_apps.size()) return false;
    for (int a = 0; a < apps_.size(); ++a) {
      if (apps_[a] != TermOf(snapshot.lc_apps[static_cast<size_t>(a)])) return false;
    }
    return true;
  }

  // Of apps with the same bound and tail, the one whose queries are late soonest is the limit.
  void AddLimit(const LcAppView& app) {
    if (app.blocking_budget_ns == kNever) return;
    const IdleLimit limit(app);
    for (IdleLimit& other : limits_) {
      if (other.Covers(limit)) return;
    }
    limits_.Add(limit);
  }

  double Least(int64_t eviction_ns, int64_t fixed_ns) const {
    double share = 1;
    for (const IdleLimit& limit : limits_) {
      share = std::min(share, limit.ShareOf(eviction_ns, fixed_ns));
      if (share < kIdleShareMin) return 0;
    }
    return share;
  }

  BoundedList<AppTerm, kMaxApps> apps_;
  BoundedList<IdleLimit, kMaxApps> limits_;
  std::array<uint64_t, (size_t{1} << kBits) / 64> known_{};  // bit by answer
  std::array<Answer, size_t{1} << kBits> answers_;
};

// Whether the present idle period is one of a share of them: the draw is made once a plan.
class IdlePeriod {
 public:
  explicit IdlePeriod(const Snapshot& snapshot) {
    TimeNs began_ns = 0;
    for (const LcAppView& app : snapshot.lc_apps) began_ns = std::max(began_ns, app.idle_since_ns);
    draw_ = Random(static_cast<uint64_t>(began_ns)).Uniform();
  }
  bool IsOneOf(double share) const {
    if (share <= 0 || share >= 1) return share >= 1;
    return draw_ < share;
  }

 private:
  double draw_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_IDLE_SHARE_H_
