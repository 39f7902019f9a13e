// What BE work that cannot be evicted does to the p99 of an LC app, and its inverse.
//
// BE work that runs while no query is active is a vacation of the server: a query that arrives
// meanwhile waits until it ends. By Fuhrmann and Cooper (Operations Research 33, 1985) the wait is
// then the wait of the M/G/1 queue plus an independent residual: here U, uniform on (0, B), where
// launches of length B follow each other. Every query has the residual, also one in the middle of a
// busy period, because what the first one waited is still in the queue. With a tail
// P(W > t) ~ exp(-eta t) the p99 moves by
//
//   ln E[exp(eta U)] / eta = ln((exp(eta B) - 1) / (eta B)) / eta       between B / 2 and B
//
// Where BE work runs during a share q of the idle time only, the residual is 0 with 1 - q, and the
// p99 moves by ln(1 - q + q E[exp(eta U)]) / eta, which is less
// (policies/adaptive/arrangement/shift.h). This file takes q = 1. Work that is evicted has another
// residual: its eviction, of nearly the same length each time. It moves the p99 by that length.
//
// MEASURED.md, "What blocking does to a queue": within 0.5 % of simulated M/D/1 queues. Pure
// functions; any thread.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_VACATION_H_
#define GPUSHARE_SRC_CORE_QUEUEING_VACATION_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

// eta times a shift or a wait above which exp() counts for nothing but its size.
inline constexpr double kVacationExponentMax = 30;

// ln((exp(x) - 1) / x) for x = eta B: the shift of the p99, times eta. Convex, from x / 2 for a
// small x to x - ln x for a large one.
inline double ShiftOfVacation(double x) {
  if (x < 1e-3) return x / 2 + x * x / 24;
  if (x > kVacationExponentMax) return x - std::log(x);
  return std::log(std::expm1(x) / x);
}

// The largest B whose shift of the p99 is at most `shift_ns`. `tail_rate` is eta in 1 / ns; 0 is
// unknown, and B is then the shift: whatever the tail, no p99 moves by more than B. kNever stays.
inline int64_t LongestVacation(int64_t shift_ns, double tail_rate) {
  if (!(tail_rate > 0) || shift_ns <= 0 || shift_ns >= kNever / 2) return shift_ns;
  const double shift = tail_rate * static_cast<double>(shift_ns);
  // 2 x shift is never too small. The function is convex, so Newton's steps stay at or above the
  // root; each at least squares the relative error.
  double x = 2 * shift;
  for (int step = 0; step < 8; ++step) {
    const double slope = x < 1e-3 ? 0.5 + x / 12 : 1 / -std::expm1(-x) - 1 / x;
    const double next = x - (ShiftOfVacation(x) - shift) / slope;
    if (!(next < x * (1 - 1e-9))) break;
    x = next;
  }
  return static_cast<int64_t>(x / tail_rate);
}

// What one launch of length B, which begins while no query is active, takes of what the p99 may
// move by: the time that it runs, times E[exp(eta U)] - 1 of a query that arrives meanwhile. The
// p99 stays within a shift of s while all launches take no more than exp(eta s) - 1 for each
// nanosecond of idle time, of which they are a part.
inline double CostOfVacation(double length_ns, double tail_rate) {
  const double x = tail_rate * length_ns;
  if (!(x > 1e-4)) return x * length_ns / 2;
  return (std::expm1(x) - x) / tail_rate;
}

// The longest launch of that cost.
inline double LongestOfCost(double cost_ns, double tail_rate) {
  const double cost = tail_rate * cost_ns;
  if (!(cost > 0)) return 0;
  // exp(x) = 1 + x + cost, and x is at most the root of 2 cost. The function is convex.
  double x = std::min(std::sqrt(2 * cost), std::log1p(cost + std::sqrt(2 * cost)));
  for (int step = 0; step < 8; ++step) {
    const double beyond = std::expm1(x) - x - cost;
    if (!(beyond > 1e-9 * cost) || x < 1e-4) break;
    x -= beyond / std::expm1(x);
  }
  return x / tail_rate;
}

// Its answers in one plan: LC apps with the same bound ask the same.
class Vacations {
 public:
  int64_t Longest(int64_t shift_ns, double tail_rate) {
    if (shift_ns != shift_ns_ || tail_rate != tail_rate_) {
      shift_ns_ = shift_ns;
      tail_rate_ = tail_rate;
      longest_ns_ = LongestVacation(shift_ns, tail_rate);
    }
    return longest_ns_;
  }

 private:
  int64_t shift_ns_ = 0;
  double tail_rate_ = 0;
  int64_t longest_ns_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_VACATION_H_
