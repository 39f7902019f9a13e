// In which idle periods BE work runs that would move a p99 beyond its bound if it ran in all.
//
// A busy period of the LC apps that begins beside BE work carries its wait W (vacation.h). If BE
// work runs in a share q of the idle periods, drawn independently, the p99 moves by
//
//   ln(1 - q + q E[exp(eta W)]) / eta
//
// so the largest share that keeps a shift of B is q = (exp(eta B) - 1) / (E[exp(eta W)] - 1). The
// draw is a hash of the instant at which the idle period began: plans of one period agree, and a
// replay draws the same. Pure; any thread.

#ifndef GPUSHARE_SRC_CORE_POLICIES_IDLE_SHARE_H_
#define GPUSHARE_SRC_CORE_POLICIES_IDLE_SHARE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"
#include "src/core/seams/vacation.h"

namespace gpushare::core {

// What one LC app allows work of which `eviction_ns` is the shift of an eviction, and `fixed_ns` is
// the length of launches that nothing evicts. All or nothing where its tail is unknown.
inline double IdleShareFor(const LcAppView& app, int64_t eviction_ns, int64_t fixed_ns) {
  if (app.blocking_budget_ns == kNever) return 1;
  constexpr double kExponentMax = 60;
  const double exponent = app.tail_rate * static_cast<double>(eviction_ns) +
                          ShiftOfVacation(app.tail_rate * static_cast<double>(fixed_ns));
  const double allowed = app.tail_rate * static_cast<double>(app.blocking_budget_ns);
  if (!(app.tail_rate > 0)) {
    return eviction_ns <= app.blocking_budget_ns - std::min(fixed_ns, kNever / 2) ? 1 : 0;
  }
  if (exponent <= allowed) return 1;
  if (exponent > kExponentMax || allowed <= 0) return 0;
  return std::expm1(allowed) / std::expm1(exponent);
}

// Of all LC apps. Less than kIdleShareMin counts as none: so rare a launch is for the tail account.
// A plan that asks often uses IdleShares.
inline double IdleShare(const Snapshot& snapshot, int64_t eviction_ns, int64_t fixed_ns) {
  double share = 1;
  for (const LcAppView& app : snapshot.lc_apps) {
    share = std::min(share, IdleShareFor(app, eviction_ns, fixed_ns));
  }
  return share < kIdleShareMin ? 0 : share;
}

// The same answers, of one snapshot: a plan asks again and again for the same few kernels, and each
// answer takes two exponential functions an LC app.
class IdleShares {
 public:
  explicit IdleShares(const Snapshot& snapshot) : snapshot_(snapshot) {}

  double Of(int64_t eviction_ns, int64_t fixed_ns) {
    const uint64_t mixed =
        (static_cast<uint64_t>(eviction_ns) ^ (static_cast<uint64_t>(fixed_ns) << 1)) *
        0x9E3779B97F4A7C15;
    const size_t at = mixed >> (64 - kBits);
    Answer& answer = answers_[at];
    if ((known_ >> at & 1) == 0 || answer.eviction_ns != eviction_ns ||
        answer.fixed_ns != fixed_ns) {
      known_ |= uint64_t{1} << at;
      answer = {eviction_ns, fixed_ns, IdleShare(snapshot_, eviction_ns, fixed_ns)};
    }
    return answer.share;
  }

 private:
  struct Answer {
    int64_t eviction_ns;
    int64_t fixed_ns;
    double share;
  };
  static constexpr int kBits = 6;

  const Snapshot& snapshot_;
  uint64_t known_ = 0;  // bit by answer
  std::array<Answer, size_t{1} << kBits> answers_;
};

// Whether the present idle period is one of the share.
inline bool IsSharedPeriod(const Snapshot& snapshot, double share) {
  if (share <= 0 || share >= 1) return share >= 1;
  TimeNs began_ns = 0;
  for (const LcAppView& app : snapshot.lc_apps) began_ns = std::max(began_ns, app.idle_since_ns);
  // SplitMix64.
  uint64_t bits = static_cast<uint64_t>(began_ns) + 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  bits ^= bits >> 31;
  constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>(bits >> 11) * kUnit < share;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_IDLE_SHARE_H_
