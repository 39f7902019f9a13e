// The shadow of an LC app: the queue that it would have alone on the whole device, on the same
// arrivals.
//
//   a query begins      shadow = max(shadow, arrival) + predicted time alone
//   its task is known   shadow += its time alone as predicted then - predicted
//   it ends             shadow += its time alone as known now - predicted
//   lag                 now + work left - shadow, at least 0
//
// `shadow` is when the last query ends there. The lag is how much later the app ends what it has,
// if it gets the whole device from now on. Every query is at most that much later than alone,
// whatever the arrivals are. The latencies in the shadow are those of the app alone, and their p99
// is its p99 alone.
//
// Queries are counted, not tasks. The one in service counts as served since it was launched, or
// since the one before it ended, at most for the mean time of one. Both are times of the device:
// the flow hears of them 10 to 90 us later (H200), which is no lag. A correction moves the shadow
// only if that has not been idle since the query's arrival: idle time absorbs it. The shadow serves
// in order of arrival, one at a time.
//
// Where queries may go on a split is decided by it (policies/adaptive/arrangement/lag.h). Threads:
// the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_SHADOW_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_SHADOW_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/recent_latencies.h"
#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"

namespace gpushare::core {

// What the shadow keeps of an active query.
struct ShadowQuery {
  TimeNs arrival_ns = 0;
  TimeNs end_ns = 0;         // in the shadow, as of its begin
  int64_t predicted_ns = 0;  // alone
  int64_t corrected_ns = 0;  // of the shadow, by then
  uint64_t busy_period = 0;  // of the shadow
  uint64_t sequence = 0;     // of its begin
  int64_t yielded_ns = 0;    // of its app, by then (app_evidence.h)
};

class Shadow {
 public:
  // `since_ns`: when the device got it, at the latest now.
  void Begin(TimeNs arrival_ns, int64_t predicted_ns, TimeNs since_ns, ShadowQuery& query) {
    // Times that an application states may be far off; sums of them must not overflow.
    query.arrival_ns = std::clamp(arrival_ns, since_ns - kMaxDurationNs, since_ns + kMaxDurationNs);
    if (query.arrival_ns > end_ns_) {
      end_ns_ = query.arrival_ns;
      ++busy_period_;
    }
    end_ns_ += predicted_ns;
    query.end_ns = end_ns_;
    query.predicted_ns = predicted_ns;
    query.corrected_ns = corrected_ns_;
    query.busy_period = busy_period_;
    query.sequence = ++begun_;
    if (queries_++ == 0) first_since_ns_ = since_ns;
    left_ns_ += predicted_ns;
  }

  // What the query is predicted to take alone is known better than at its begin, and it has not
  // ended. Queries that began behind it move with it, and those ahead of it do not. Where too many
  // such corrections are kept already, its end corrects the shadow.
  void Predict(int64_t predicted_ns, ShadowQuery& query) {
    const int64_t off_ns = predicted_ns - query.predicted_ns;
    const bool is_last = query.sequence == begun_;
    const bool moves_others = !is_last && query.busy_period == busy_period_;
    if (moves_others && !KeepAhead(query.sequence, off_ns)) return;
    query.predicted_ns = predicted_ns;
    left_ns_ += off_ns;
    if (is_last || moves_others) end_ns_ += off_ns;
    (moves_others ? corrected_ns_ : query.end_ns) += off_ns;
  }

  // `alone_ns`: what the query takes alone, as known now. `ended_ns`: when it ended on the device.
  // Returns its latency in the shadow.
  int64_t End(const ShadowQuery& query, int64_t alone_ns, TimeNs ended_ns) {
    const int64_t off_ns = alone_ns - query.predicted_ns;
    const TimeNs end_ns =
        query.end_ns + (corrected_ns_ - query.corrected_ns) + off_ns - TakeAhead(query.sequence);
    const int64_t latency_ns = std::max(alone_ns, end_ns - query.arrival_ns);
    if (query.busy_period == busy_period_) {
      end_ns_ += off_ns;
      corrected_ns_ += off_ns;
    }
    RemoveOne(query);
    first_since_ns_ = std::max(first_since_ns_, ended_ns);
    latencies_.Add(latency_ns);
    const bool enough = latencies_.count() >= kTailQueriesMin;
    if (enough && counted_++ % kTailQueriesStep == 0) {
      p99_ns_ = EstimateNow(1).p99_ns;
      const double p95_ns = latencies_.Quantile(0.95);
      slow_ns_ = static_cast<int64_t>(p95_ns * (1 - RecentLatencies::kResolution));
    }
    return latency_ns;
  }

  // The query counts no more, until it returns. Its latency in the shadow is not known.
  void Leave(const ShadowQuery& query, TimeNs now_ns) {
    TakeAhead(query.sequence);
    RemoveOne(query);
    first_since_ns_ = now_ns;
  }
  void Return(const ShadowQuery& query, TimeNs now_ns) {
    if (queries_++ == 0) first_since_ns_ = now_ns;
    left_ns_ += query.predicted_ns;
  }

  // 0 too while nobody knows how long the active queries take, as of an app's first ones.
  int64_t LagNs(TimeNs now_ns) const {
    if (queries_ == 0 || left_ns_ == 0) return 0;
    const int64_t served_ns = std::clamp<int64_t>(now_ns - first_since_ns_, 0, left_ns_ / queries_);
    return std::max<int64_t>(0, now_ns + left_ns_ - served_ns - end_ns_);
  }

  // The latencies so far were those of other work. The queue stays.
  void ForgetLatencies() {
    latencies_.Clear();
    p99_ns_ = slow_ns_ = counted_ = 0;
  }

  // How long the oldest active query has been the oldest; 0 without one.
  int64_t ServiceAgeNs(TimeNs now_ns) const {
    return queries_ == 0 ? 0 : std::max<int64_t>(0, now_ns - first_since_ns_);
  }

  // p99 alone of all queries of the window, with its standard error as a share of it: an
  // exponential tail between the two percentiles, and the queries above the 99th, of which a busy
  // period counts as few (`spread`, TailSpread). Takes microseconds.
  struct Estimate {
    int64_t p99_ns = 0;  // 0: no query has ended
    double error = 0;
  };
  Estimate EstimateNow(double spread) const {
    const double p99_ns = latencies_.Quantile(0.99);
    if (!(p99_ns > 0)) return {};
    const double per_deviation_ns = (p99_ns - latencies_.Quantile(0.95)) / std::log(5);
    const double deviations = spread / std::sqrt(0.01 * latencies_.count());
    return {static_cast<int64_t>(p99_ns), per_deviation_ns * deviations / p99_ns};
  }

  // p99 alone, from kTailQueriesMin queries on, as of the last kTailQueriesStep; 0: unknown.
  int64_t p99_ns() const { return p99_ns_; }
  // From which latency on a query is among the slowest twentieth; likewise.
  int64_t slow_ns() const { return slow_ns_; }

 private:
  // A correction that queries ahead of a sequence number do not have.
  struct Ahead {
    uint64_t sequence = 0;
    int64_t off_ns = 0;
    int64_t queries = 0;  // active ones, at least
  };
  static constexpr int32_t kAheadMax = 16;

  // False: it has no room.
  bool KeepAhead(uint64_t sequence, int64_t off_ns) {
    const int64_t queries = queries_ - 1 - static_cast<int64_t>(begun_ - sequence);
    if (queries <= 0 || off_ns == 0) return true;
    if (ahead_count_ == kAheadMax) return false;
    ahead_[static_cast<size_t>(ahead_count_++)] = {sequence, off_ns, queries};
    return true;
  }
  // The query is no longer active. Returns the corrections that it does not have.
  int64_t TakeAhead(uint64_t sequence) {
    int64_t sum_ns = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i < ahead_count_; ++i) {
      Ahead each = ahead_[static_cast<size_t>(i)];
      if (each.sequence > sequence) {
        sum_ns += each.off_ns;
        --each.queries;
      }
      if (each.queries > 0) ahead_[static_cast<size_t>(kept++)] = each;
    }
    ahead_count_ = kept;
    return sum_ns;
  }
  void RemoveOne(const ShadowQuery& query) {
    if (--queries_ == 0) ahead_count_ = 0;
    left_ns_ -= query.predicted_ns;
  }

  TimeNs end_ns_ = 0;   // of the last query
  uint64_t begun_ = 0;  // queries, of all times
  uint64_t busy_period_ = 0;
  int64_t corrected_ns_ = 0;  // the sum of all corrections
  std::array<Ahead, kAheadMax> ahead_;
  int32_t ahead_count_ = 0;
  int64_t left_ns_ = 0;        // predicted, of the active queries
  int64_t queries_ = 0;        // active
  TimeNs first_since_ns_ = 0;  // since when the first active query is the first
  int64_t p99_ns_ = 0;
  int64_t slow_ns_ = 0;
  int64_t counted_ = 0;        // queries since there were enough
  RecentLatencies latencies_;  // in the shadow
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_SHADOW_H_
