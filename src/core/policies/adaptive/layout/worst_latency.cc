// The app closest to its limit (worst_latency.h).

#include "src/core/policies/adaptive/layout/worst_latency.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "src/core/policies/adaptive/layout/layout_question.h"
#include "src/core/policies/adaptive/layout/layout_value.h"
#include "src/core/seams/queue_tail.h"

namespace gpushare::core {

namespace {

using SpeedOfApp = absl::FunctionRef<double(size_t app)>;

LatencyEstimate WorstAt(const Snapshot& snapshot, SpeedOfApp speed_of) {
  double load = 0;
  double split_load = 0;
  double service_ns = 0;
  double whole_service_ns = 0;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    const double rho = RoundLoad(snapshot.lc_apps[a].load);
    const double speed = speed_of(a);
    load += rho;
    whole_service_ns += rho * static_cast<double>(snapshot.lc_apps[a].solo_ns);
    split_load += speed > 0 ? rho / speed : 1;
    if (speed > 0) {
      service_ns += rho / speed * static_cast<double>(snapshot.lc_apps[a].solo_ns) / speed;
    }
  }
  if (split_load > 0) service_ns /= split_load;
  if (load > 0) whole_service_ns /= load;
  const double margin = LoadMargin(snapshot);
  LatencyEstimate worst;
  double worst_ratio = 0;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    const LcTerm lc = MakeLcTerm(snapshot.lc_apps[a]);
    const double speed = speed_of(a);
    const bool stable = speed > 0 && split_load < 1;
    const auto consider = [&](double value, double limit) {
      if (!stable) value = static_cast<double>(kMaxDurationNs);  // the queue grows without end
      if (value / limit <= worst_ratio) return;
      worst_ratio = value / limit;
      worst = {static_cast<int64_t>(value), static_cast<int64_t>(limit)};
    };
    const double p99 = static_cast<double>(std::max<int64_t>(lc.p99_ns, 1));
    const double inflation = Queueing(std::min(load, kLoadMax), split_load, margin) / speed;
    if (lc.p99_bound > 0) consider(p99 * inflation, lc.p99_bound * p99);
    if (lc.p50_bound > 0 && lc.solo_ns > 0) {
      const double solo = static_cast<double>(lc.solo_ns);
      consider(solo * inflation, lc.p50_bound * solo);
    }
    if (lc.target_ns > 0) {
      const auto solo = static_cast<double>(lc.solo_ns);
      const QueueEffect effect = {inflation, QueueP99(solo / speed, service_ns, split_load),
                                  QueueP99(solo, whole_service_ns, load)};
      consider(TargetP99(lc, effect), static_cast<double>(lc.target_ns));
    }
  }
  return worst;
}

}  // namespace

LatencyEstimate WorstLatency(const Snapshot& snapshot, int32_t kernel, int32_t split) {
  return WorstAt(snapshot, [&](size_t app) {
    return snapshot.pairs.at(static_cast<int32_t>(app), kernel, split).lc_speed;
  });
}

LatencyEstimate WorstLatencyBesideCopies(const Snapshot& snapshot, LinkUse copies) {
  return WorstAt(snapshot,
                 [&](size_t app) { return snapshot.lc_apps[app].speed_beside_copies[copies]; });
}

}  // namespace gpushare::core
