// The decay rate of the tail of an LC app's latencies, from its last queries.
//
// With P(latency > t) ~ exp(-eta t) the 99th percentile lies ln(5) / eta above the 95th. BE work
// that adds an independent residual leaves eta as it is (seams/vacation.h), so queries beside BE
// work count too; queries that met a task on credit (tail_account.h) do not. A rate that is too
// high is the safe side: the estimate is raised by two standard deviations, and there is none (0)
// before kTailQueriesMin queries, nor where so few queries wait that the two percentiles are near
// each other. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_LATENCY_TAIL_H_
#define GPUSHARE_SRC_CORE_STATE_LATENCY_TAIL_H_

#include <cmath>
#include <cstdint>

#include "src/core/base/recent_latencies.h"
#include "src/core/base/tuning.h"
#include "src/core/seams/vacation.h"

namespace gpushare::core {

// eta in 1 / ns; 0: unknown.
inline double TailRate(const RecentLatencies& latencies) {
  const double count = latencies.count();
  if (count < kTailQueriesMin) return 0;
  const double p99_ns = latencies.Quantile(0.99);
  const double span_ns = p99_ns - latencies.Quantile(0.95);
  if (span_ns < p99_ns * kTailSpanMin) return 0;
  const double deviation = 1 / std::sqrt(0.01 * count);  // of a quantile with so many values above
  return std::log(5) / span_ns * (1 + 2 * deviation);
}

class LatencyTail {
 public:
  void Add(int64_t latency_ns) {
    latencies_.Add(latency_ns);
    if (++added_ % kTailQueriesStep == 0) rate_ = TailRate(latencies_);
  }
  double rate() const { return rate_; }  // eta in 1 / ns; 0: unknown

  // Of this tail (vacation.h). Remembers the last answer: the shift seldom changes.
  int64_t LongestVacation(int64_t shift_ns) {
    if (shift_ns != asked_shift_ns_ || rate_ != asked_rate_) {
      asked_shift_ns_ = shift_ns;
      asked_rate_ = rate_;
      longest_ns_ = core::LongestVacation(shift_ns, rate_);
    }
    return longest_ns_;
  }
  void Clear() { *this = LatencyTail(); }

 private:
  RecentLatencies latencies_;
  int64_t added_ = 0;
  double rate_ = 0;
  int64_t asked_shift_ns_ = 0;
  double asked_rate_ = 0;
  int64_t longest_ns_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_LATENCY_TAIL_H_
