// What an LC app was promised: the one translation of its bounds and target.
//
// An app states a bound on p99 over its p99 alone, a bound on the median over the median alone, a
// target, or several of them. Everything else asks this file what that leaves to BE work:
//
//   promise.LatencyLimit()               a query above it is late
//   promise.Slack(solo_ns)               how far BE work may move the p99
//   promise.MedianSlack(solo_ns)         how far it may move the median
//   promise.TargetSlack(queue_ns, tail)  what the target leaves beyond the p99
//   promise.Planned(solo_ns)             what a plan may use, with Keeps, MostInflation and Worst
//
// A plan uses a part of the slack: kPlannedShare for delays and kBoundShareOfSplit where the
// device is split. The rest is for errors. kNever: no limit. Pure; threads: any.

#ifndef GPUSHARE_SRC_CORE_PROMISE_PROMISE_H_
#define GPUSHARE_SRC_CORE_PROMISE_PROMISE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/base/types.h"

namespace gpushare::core {

// What an arrangement and the queue do to the latency of an LC app.
struct QueueEffect {
  double inflation = 1;     // factor on a p99 that is known
  double tail_p99_ns = 0;   // p99 of a queue of random arrivals where the app is to run
  double whole_p99_ns = 0;  // p99 of that queue on the whole device
};

// A predicted latency and what it may be.
struct LatencyEstimate {
  int64_t value_ns = 0;
  int64_t limit_ns = 0;  // 0: the app has no limit
};

// The largest inflation that an app may have, by the delay that BE work adds: the least of a few
// lines that fall with the delay. A planner asks it for each BE kernel.
struct InflationLimit {
  struct Line {
    double without_delay = std::numeric_limits<double>::infinity();
    double per_ns = 0;
  };
  Line median;
  Line p99;
  Line target;
  double At(double delay_ns) const {
    return std::min({median.without_delay - median.per_ns * delay_ns,
                     p99.without_delay - p99.per_ns * delay_ns,
                     target.without_delay - target.per_ns * delay_ns});
  }
};

// The part of a promise that a plan may use on a split. Compared with predicted latencies.
struct PlannedPromise {
  double p99_bound = 0;
  double p50_bound = 0;
  int64_t p99_ns = 0;  // alone: as stated, or the solo duration where that is unknown
  int64_t target_ns = 0;
  int64_t solo_ns = 0;
  double target_tail = 0;  // with a target: factor on the p99 that the load gives; else 0
  bool bare = false;       // a target, and nobody knows the p99

  bool StatesNothing() const { return p99_bound <= 0 && p50_bound <= 0 && target_ns <= 0; }
  // Whether the app keeps every bound and the target with this effect and a delay of
  // `blocking_ns`. An app that states nothing is inflated by kUnstatedInflation at most: it must
  // not move to a few SMs for BE's sake.
  bool Keeps(const QueueEffect& effect, int64_t blocking_ns) const;
  // The inflation from which on Keeps() says no; only where the app has no target_tail.
  InflationLimit MostInflation() const;
  // Of its bounds and target, the one that the effect brings closest to its limit, or furthest
  // beyond it. `stable`: the queue does not grow without end. `delay_ns`: of BE work, on top.
  struct Closest {
    double value_ns = 0;
    double limit_ns = 0;
    double alone_ns = 0;  // the same latency without BE work
    double ratio() const { return limit_ns > 0 ? value_ns / limit_ns : 0; }
  };
  Closest Worst(const QueueEffect& effect, bool stable, int64_t delay_ns = 0) const;
  bool operator==(const PlannedPromise&) const = default;

 private:
  double TargetP99(const QueueEffect& effect) const;
};

struct Promise {
  int64_t target_ns = 0;     // absolute latency, 0: none
  double p99_bound = 0;      // bound on p99 over p99 alone, 1.05 = 5 %; 0: none
  double p50_bound = 0;      // bound on the median over the median alone; 0: none
  int64_t p99_alone_ns = 0;  // as stated; 0: unknown
  double slack_share = 1;    // the part of its slack that plans use (evidence/slack_share.h)

  bool HasTarget() const { return target_ns > 0; }
  bool BoundsP99() const { return p99_bound > 0; }
  // A target, and no p99 alone.
  bool HasBareTarget() const { return target_ns > 0 && p99_alone_ns == 0; }
  bool StatesNothing() const { return !HasTarget() && !BoundsP99() && p50_bound <= 0; }
  // Another promise than a target leaves no time for BE work beside a query.
  bool HasOnlyATarget() const { return target_ns > 0 && p99_bound <= 0 && p50_bound <= 0; }
  // A query misses the target even alone on the device.
  bool TargetIsLost(int64_t solo_ns) const { return target_ns > 0 && target_ns <= solo_ns; }

  // A query is late by the bound even alone on the device: the stated p99 is of another service.
  bool BoundIsLost(int64_t solo_ns) const {
    return p99_bound > 0 && p99_alone_ns > 0 &&
           static_cast<double>(solo_ns) > p99_bound * static_cast<double>(p99_alone_ns);
  }

  // What is left where the target is lost: the bounds, and without a bound on p99 what an app that
  // states nothing has, beside the p99 alone that was found (0: unknown).
  Promise WithoutTarget(int64_t found_p99_ns) const;
  // A latency above this is late; kNever while that is unknown.
  int64_t LatencyLimit() const;
  // The most that the p99 may be over the p99 alone: by the bound, and by the target where that p99
  // is stated. kUnstatedInflation where neither says.
  double MostP99() const;
  // The share of queries that are late alone, from a stated p99: of a tail that falls
  // exponentially from the solo duration on. A lull shows fewer, and does not stay.
  double LateAlone(int64_t solo_ns) const;
  // How far a delay at the begin of every busy period may move the p99: the planned share of
  // (bound - 1) x p99 alone. The solo duration stands in for an unknown p99, which is never below
  // it. kNever without a bound; never negative.
  int64_t Slack(int64_t solo_ns) const;
  // How far behind its shadow the app may fall on a split: the planned share of what its bound and
  // its target leave beyond the p99 alone. That is the stated one or `shadow_p99_ns`, 0 unknown,
  // whichever is less, as a stated one may be of another load. kNever: no limit.
  int64_t LagSlack(int64_t solo_ns, int64_t shadow_p99_ns) const;
  // The same of the median, which moves by nearly all of a delay.
  int64_t MedianSlack(int64_t solo_ns) const;
  // What the target leaves beyond the app's p99; kNever without one. `queue_ns`: p99 of its queue
  // by its load, 0 unknown; `tail`: the measured factor on it.
  int64_t TargetSlack(double queue_ns, double tail) const;
  // The share by which queries may take longer, so that a queue of this load grows by
  // kDutyShareOfBound of the bound's slack.
  double ToleratedLonger(double load) const;
  // The part that a split may use. `tail`: as PlannedPromise::target_tail.
  PlannedPromise Planned(int64_t solo_ns, double tail) const;

  // Whether every bound is none or in its range. `app` is the app's name, for the message.
  absl::Status CheckBounds(absl::string_view app) const;
  // A sentence for the application that BoundIsLost(solo_ns).
  std::string BoundLostText(absl::string_view app, int64_t solo_ns) const;
  std::string TargetLostText(absl::string_view app, int64_t solo_ns) const;
};

// What an app states anew of its promise; what is left out stays. 0 as in Promise.
struct PromiseUpdate {
  std::optional<int64_t> target_ns = {};
  std::optional<double> p99_bound = {};
  std::optional<double> p50_bound = {};
  std::optional<int64_t> p99_alone_ns = {};

  // States all of `promise`.
  static PromiseUpdate Of(const Promise& promise);
  bool StatesAny() const { return target_ns || p99_bound || p50_bound || p99_alone_ns; }
  Promise Over(const Promise& promise) const;
};

// The tail of an app with a target that stated its p99 alone.
//
// A stated p99 is a sample: of 600 queries it errs by a fifth, and a queue on a slower side errs
// with it. So the queue's own p99 counts too. Not where the stated one is far below that of random
// arrivals: these arrivals are regular.
struct StatedTail {
  double stated_ns = 0;
  double queue_ns = 0;  // QueueP99 of the app alone

  // With a latency that is `inflation` times as long by the queue's mean, and `queue_ns` by its
  // tail. `tail` is the factor of late queries.
  double P99(double inflation, double queue_on_side_ns, double tail) const;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_PROMISE_PROMISE_H_
