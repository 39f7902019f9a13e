// The decay rate of the tail of an LC app's latencies, from its last queries.
//
// With P(latency > t) ~ exp(-eta t) the 99th percentile lies ln(5) / eta above the 95th. BE work
// that adds an independent residual leaves eta as it is (queueing/vacation.h), so queries beside BE
// work count too; queries that met a task on credit (tail_account.h) do not. A rate that is too
// high is the safe side: the estimate is raised by two error bars. An error bar is
// spread / sqrt(queries above the 99th percentile). The queries of a busy period wait together, so
// that at a high load they count as fewer (TailSpread, queue_tail.h). Few queries make that
// twice the rate or more, so it is bounded by kPoissonTailMargin times the rate of random arrivals
// (queue_tail.h) unless the estimate itself is above that, and before kTailQueriesMin queries that
// bound is all there is. There is no rate (0) where so few queries wait that the two percentiles
// are near each other. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_LATENCY_TAIL_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_LATENCY_TAIL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/recent_latencies.h"
#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"
#include "src/core/queueing/vacation.h"

namespace gpushare::core {

// Derived from the load: the rate of random arrivals, 0 unknown, and the spread of an estimate.
struct LoadTail {
  double poisson_rate = 0;
  double spread = 1;
  friend bool operator==(const LoadTail&, const LoadTail&) = default;
};

// What of the latencies an estimate takes; the quantiles from kTailQueriesMin queries on.
struct TailQuantiles {
  double count = 0;
  double p50_ns = 0;
  double p95_ns = 0;
  double p99_ns = 0;
};
inline TailQuantiles QuantilesOf(const RecentLatencies& latencies) {
  const double count = latencies.count();
  if (count < kTailQueriesMin) return {.count = count};
  return {count, latencies.Quantile(0.5), latencies.Quantile(0.95), latencies.Quantile(0.99)};
}

// A delay beyond which at least half of the queries that meet it miss a bound of `shift_ns` above
// the p99 alone: those that would have been slower than the median. Where no query waits for
// another, that is the bound itself. The median includes latencies beside BE work: it may be too
// long, which makes the answer smaller. `p99_alone_ns` and `solo_ns` 0: unknown. If no p99 is
// stated, that of the latencies counts, less the delay, which may be all that is above the median.
// kNever: nothing is measured or stated, so that no delay counts as late.
inline int64_t LateDelay(int64_t shift_ns, int64_t p99_alone_ns, int64_t solo_ns,
                         const TailQuantiles& tail) {
  const bool measured = tail.count >= kTailQueriesMin;
  if (shift_ns >= kNever / 2) return kNever;
  if (p99_alone_ns > 0) {
    const double median_ns = measured ? tail.p50_ns : static_cast<double>(solo_ns);
    const double above_ns = static_cast<double>(p99_alone_ns) - median_ns;
    return shift_ns + static_cast<int64_t>(std::max(0.0, above_ns));
  }
  if (!measured) return kNever;
  const double above_ns = tail.p99_ns - tail.p50_ns;
  return std::max(shift_ns, (shift_ns + static_cast<int64_t>(above_ns)) / 2);
}

// eta in 1 / ns; 0: unknown.
inline double TailRate(const TailQuantiles& tail, const LoadTail& load) {
  const double count = tail.count;
  const double usual = kPoissonTailMargin * load.poisson_rate;
  if (count < kTailQueriesMin) return usual;
  const double p99_ns = tail.p99_ns;
  const double span_ns = p99_ns - tail.p95_ns;
  if (span_ns < p99_ns * kTailSpanMin) return 0;
  const double deviation = load.spread / std::sqrt(kLateOfP99 * count);
  const double rate = std::log(5) / span_ns;
  const double raised = rate * (1 + 2 * deviation);
  return usual > 0 ? std::min(raised, std::max(usual, kPoissonTailMargin * rate)) : raised;
}

class LatencyTail {
 public:
  void Add(int64_t latency_ns) {
    latencies_.Add(latency_ns);
    ++added_;
  }
  // eta in 1 / ns; 0: unknown. Estimated anew after kTailQueriesStep queries, and for another load.
  double Rate(const LoadTail& load) {
    if (added_ / kTailQueriesStep != estimated_ || load != load_) {
      estimated_ = added_ / kTailQueriesStep;
      load_ = load;
      // The load changes with each plan, and the quantiles take microseconds.
      if (quantiles_at_ != added_) quantiles_ = QuantilesOf(latencies_);
      quantiles_at_ = added_;
      rate_ = TailRate(quantiles_, load);
    }
    return rate_;
  }

  // Of the last estimate.
  const TailQuantiles& quantiles() const { return quantiles_; }

  // Of this tail (vacation.h). Remembers the last answer: the shift seldom changes.
  int64_t LongestVacation(int64_t shift_ns, const LoadTail& load, Vacations& vacations) {
    Rate(load);
    if (shift_ns != asked_shift_ns_ || rate_ != asked_rate_) {
      asked_shift_ns_ = shift_ns;
      asked_rate_ = rate_;
      longest_ns_ = vacations.Longest(shift_ns, rate_);
    }
    return longest_ns_;
  }
  void Clear() { *this = LatencyTail(); }

 private:
  RecentLatencies latencies_;
  int64_t added_ = 0;
  int64_t estimated_ = 0;  // added_ in steps, at the last estimate
  TailQuantiles quantiles_;
  int64_t quantiles_at_ = 0;  // added_ when they were taken
  LoadTail load_;
  double rate_ = 0;
  int64_t asked_shift_ns_ = 0;
  double asked_rate_ = 0;
  int64_t longest_ns_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_LATENCY_TAIL_H_
