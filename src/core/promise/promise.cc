// Bounds and targets as slack and limits (promise.h).

#include "src/core/promise/promise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {
namespace {

// The bound to plan with: 1 + share x (bound - 1), or bound - kBoundMarginMax if that is larger. 0,
// no bound, stays 0.
double PlannedBound(double bound, double share) {
  if (!(bound > 0)) return 0;
  return bound - std::min((1 - share) * std::max(0.0, bound - 1), kBoundMarginMax);
}

// The part of its slack alone.
double PartOfBound(double bound, double part) { return bound > 1 ? 1 + part * (bound - 1) : bound; }

// (bound - 1) x `alone_ns`; kNever without a bound.
int64_t SlackOf(double bound, int64_t alone_ns) {
  if (!(bound > 0)) return kNever;
  const double tolerated = (bound - 1) * std::max(0.0, static_cast<double>(alone_ns));
  // 2^63 as a double is above every int64.
  return tolerated <= 0 ? 0 : tolerated < 9.2e18 ? static_cast<int64_t>(tolerated) : kNever - 1;
}

// `p99_ns` as the queue or a sample gives it, 0 unknown, and `tail` as measured. Where the target
// is closer than that, or lost: still kUnstatedInflation, or evictable BE work would never run. An
// unknown p99 counts as the target.
int64_t LeftOfTarget(int64_t target_ns, double p99_ns, double tail) {
  const double target = static_cast<double>(target_ns);
  if (p99_ns <= 0) return static_cast<int64_t>((kUnstatedInflation - 1) * target);
  return static_cast<int64_t>(std::max(target - p99_ns * tail, (kUnstatedInflation - 1) * p99_ns));
}

}  // namespace

double StatedTail::P99(double inflation, double queue_on_side_ns, double tail) const {
  const double stated = stated_ns * inflation * std::max(1.0, tail);
  const bool regular = stated_ns < kTargetTailMin * queue_ns;
  return regular ? stated : std::max(stated, queue_on_side_ns * tail);
}

Promise Promise::WithoutTarget(int64_t found_p99_ns) const {
  Promise left = *this;
  left.target_ns = 0;
  if (!BoundsP99()) {
    left.p99_bound = kUnstatedInflation;
    left.p99_alone_ns = found_p99_ns;
  }
  return left;
}

int64_t Promise::LatencyLimit() const {
  int64_t limit_ns = target_ns > 0 ? target_ns : kNever;
  if (p99_bound > 0 && p99_alone_ns > 0) {
    const double bound_ns = p99_bound * static_cast<double>(p99_alone_ns);
    if (bound_ns < 9e18) limit_ns = std::min(limit_ns, static_cast<int64_t>(bound_ns));
  }
  return limit_ns;
}

double Promise::MostP99() const {
  const bool by_target = target_ns > 0 && p99_alone_ns > 0;
  if (!BoundsP99() && !by_target) return kUnstatedInflation;
  double most = BoundsP99() ? p99_bound : std::numeric_limits<double>::infinity();
  if (by_target) {
    most = std::min(most, static_cast<double>(target_ns) / static_cast<double>(p99_alone_ns));
  }
  return most;
}

double Promise::LateAlone(int64_t solo_ns) const {
  if (!(p99_bound > 0) || p99_alone_ns <= solo_ns) return 0;
  const auto above_solo_ns = static_cast<double>(p99_alone_ns - solo_ns);
  const double slack_ns = std::max(0.0, p99_bound - 1) * static_cast<double>(p99_alone_ns);
  return kLateOfP99 * std::pow(kLateOfP99, slack_ns / above_solo_ns);
}

int64_t Promise::Slack(int64_t solo_ns) const {
  return SlackOf(PartOfBound(PlannedBound(p99_bound, kPlannedShare), slack_share),
                 p99_alone_ns > 0 ? p99_alone_ns : solo_ns);
}

int64_t Promise::LagSlack(int64_t solo_ns, int64_t shadow_p99_ns) const {
  const int64_t stated_ns = p99_alone_ns > 0 ? p99_alone_ns : kNever;
  const int64_t shadow_ns = shadow_p99_ns > 0 ? shadow_p99_ns : kNever;
  const int64_t known_ns = std::min(stated_ns, shadow_ns);
  const double planned = PartOfBound(PlannedBound(p99_bound, kBoundShareOfSplit), slack_share);
  const int64_t slack_ns = SlackOf(planned, known_ns == kNever ? solo_ns : known_ns);
  // A target that is missed alone leaves no slack to measure a lag by.
  if (target_ns <= shadow_p99_ns || shadow_p99_ns <= 0) return slack_ns;
  const auto left_ns = static_cast<double>(target_ns - shadow_p99_ns);
  return std::min(slack_ns, static_cast<int64_t>(kBoundShareOfSplit * slack_share * left_ns));
}

int64_t Promise::MedianSlack(int64_t solo_ns) const { return SlackOf(p50_bound, solo_ns); }

int64_t Promise::TargetSlack(double queue_ns, double tail) const {
  if (target_ns <= 0) return kNever;
  if (HasBareTarget()) return LeftOfTarget(target_ns, queue_ns, tail);
  const StatedTail stated{static_cast<double>(p99_alone_ns), queue_ns};
  return LeftOfTarget(target_ns, stated.P99(1, queue_ns, tail), 1);
}

double Promise::ToleratedLonger(double load) const {
  const double slack = kDutyShareOfBound * std::max(0.0, p99_bound - 1);
  const double rho = std::clamp(load, 0.0, kLoadMax);
  return slack * (1 - rho) / (1 + rho * slack);
}

PlannedPromise Promise::Planned(int64_t solo_ns, double tail) const {
  PlannedPromise planned;
  planned.p99_bound = PartOfBound(PlannedBound(p99_bound, kBoundShareOfSplit), slack_share);
  planned.p50_bound = p50_bound;
  planned.p99_ns = p99_alone_ns > 0 ? p99_alone_ns : solo_ns;
  // A split is chosen for less than the whole target: its queue is sensitive to each error.
  planned.target_ns = static_cast<int64_t>(kPlannedShare * static_cast<double>(target_ns));
  planned.solo_ns = solo_ns;
  planned.target_tail = tail;
  planned.bare = tail > 0 && p99_alone_ns <= 0;
  return planned;
}

absl::Status Promise::CheckBounds(absl::string_view app) const {
  for (const auto& [what, bound] : {std::pair{"p99", p99_bound}, std::pair{"p50", p50_bound}}) {
    if (bound == 0 || (bound >= 1 && bound <= 1000)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("The ", what, " bound of app '", app, "' is ", bound,
                     ", and it must be 0 (none) or lie between 1 and 1000."));
  }
  return absl::OkStatus();
}

std::string Promise::BoundLostText(absl::string_view app, int64_t solo_ns) const {
  return absl::StrCat("App '", app, "' misses its p99 bound even alone: a query takes ", solo_ns,
                      " ns on an idle device, and the bound is ", p99_bound, " times ",
                      p99_alone_ns,
                      " ns. BE work keeps the bound on the p99 that the library estimates, ",
                      "until an update of the app states another p99 alone.");
}

std::string Promise::TargetLostText(absl::string_view app, int64_t solo_ns) const {
  return absl::StrCat("App '", app, "' misses its target even alone: a query takes ", solo_ns,
                      " ns on an idle device, and the target is ", target_ns,
                      " ns. Its late queries hold no BE work back, until an update of the app ",
                      "states a longer target.");
}

PromiseUpdate PromiseUpdate::Of(const Promise& promise) {
  return {promise.target_ns, promise.p99_bound, promise.p50_bound, promise.p99_alone_ns};
}

Promise PromiseUpdate::Over(const Promise& promise) const {
  return {.target_ns = target_ns.value_or(promise.target_ns),
          .p99_bound = p99_bound.value_or(promise.p99_bound),
          .p50_bound = p50_bound.value_or(promise.p50_bound),
          .p99_alone_ns = p99_alone_ns.value_or(promise.p99_alone_ns)};
}

// With a bare target the p99 is beyond the target while nothing is known of the app's queries.
double PlannedPromise::TargetP99(const QueueEffect& effect) const {
  if (!bare) {
    const StatedTail stated{static_cast<double>(p99_ns), effect.whole_p99_ns};
    return stated.P99(effect.inflation, effect.tail_p99_ns, target_tail);
  }
  if (solo_ns <= 0) return kTargetTailMax * static_cast<double>(target_ns);
  return target_tail * effect.tail_p99_ns;
}

bool PlannedPromise::Keeps(const QueueEffect& effect, int64_t blocking_ns) const {
  constexpr double kRounding = 1e-9;
  const double inflation = effect.inflation;
  if (StatesNothing()) return inflation <= kUnstatedInflation;
  const double blocking = static_cast<double>(blocking_ns);
  if (p50_bound > 0) {  // the median alone is at least the solo duration
    const double share = solo_ns > 0 ? blocking / static_cast<double>(solo_ns) : 0;
    if (inflation + share > p50_bound + kRounding) return false;
  }
  if (p99_bound > 0) {
    const double share = p99_ns > 0 ? blocking / static_cast<double>(p99_ns) : 0;
    if (inflation + share > p99_bound + kRounding) return false;
  }
  return target_ns <= 0 || TargetP99(effect) + blocking <= static_cast<double>(target_ns);
}

InflationLimit PlannedPromise::MostInflation() const {
  const auto of_ns = [](double without_delay, int64_t ns) -> InflationLimit::Line {
    return {without_delay, ns > 0 ? 1 / static_cast<double>(ns) : 0};
  };
  InflationLimit limit;
  if (StatesNothing()) limit.p99 = of_ns(kUnstatedInflation, 0);
  if (p50_bound > 0) limit.median = of_ns(p50_bound, solo_ns);
  if (p99_bound > 0) limit.p99 = of_ns(p99_bound, p99_ns);
  if (target_ns > 0 && p99_ns > 0) {
    limit.target = of_ns(static_cast<double>(target_ns) / static_cast<double>(p99_ns), p99_ns);
  }
  return limit;
}

PlannedPromise::Closest PlannedPromise::Worst(const QueueEffect& effect, bool stable,
                                              int64_t delay_ns) const {
  Closest worst;
  double worst_ratio = 0;
  const auto consider = [&](double value, double limit, double alone) {
    value += static_cast<double>(delay_ns);
    if (!stable) value = static_cast<double>(kMaxDurationNs);  // the queue grows without end
    if (value / limit <= worst_ratio) return;
    worst_ratio = value / limit;
    worst = {value, limit, alone};
  };
  const double p99 = static_cast<double>(std::max<int64_t>(p99_ns, 1));
  if (p99_bound > 0) consider(p99 * effect.inflation, p99_bound * p99, p99);
  if (p50_bound > 0 && solo_ns > 0) {
    const double solo = static_cast<double>(solo_ns);
    consider(solo * effect.inflation, p50_bound * solo, solo);
  }
  if (target_ns > 0) {
    const QueueEffect none = {1, effect.whole_p99_ns, effect.whole_p99_ns};
    consider(TargetP99(effect), static_cast<double>(target_ns), TargetP99(none));
  }
  return worst;
}

}  // namespace gpushare::core
