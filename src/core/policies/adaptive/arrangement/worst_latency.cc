// The app closest to its limit (worst_latency.h).

#include "src/core/policies/adaptive/arrangement/worst_latency.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/policies/adaptive/arrangement/value.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {

namespace {

using SpeedOfApp = absl::FunctionRef<double(size_t app)>;

struct AtSpeeds {
  PlannedPromise::Closest worst;
  bool kept = true;
};

bool Keeps(const LcTerm& lc, const QueueEffect& effect, bool stable, int64_t delay_ns) {
  return lc.silent || (stable && lc.promise.Keeps(effect, delay_ns));
}

AtSpeeds JudgeAt(const Snapshot& snapshot, SpeedOfApp speed_of, int64_t delay_ns) {
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
  AtSpeeds judged;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    const LcTerm lc = MakeLcTerm(snapshot.lc_apps[a]);
    const double speed = speed_of(a);
    const bool stable = speed > 0 && split_load < 1;
    QueueEffect effect;
    effect.inflation = Queueing(std::min(load, kLoadMax), split_load, margin) / speed;
    if (lc.promise.target_ns > 0) {
      const auto solo = static_cast<double>(lc.promise.solo_ns);
      effect.tail_p99_ns = QueueP99(solo / speed, service_ns, split_load);
      effect.whole_p99_ns = QueueP99(solo, whole_service_ns, load);
    }
    judged.kept = judged.kept && Keeps(lc, effect, stable, delay_ns);
    const PlannedPromise::Closest closest = lc.promise.Worst(effect, stable, delay_ns);
    if (closest.ratio() > judged.worst.ratio()) judged.worst = closest;
  }
  return judged;
}

LatencyEstimate WorstAt(const Snapshot& snapshot, SpeedOfApp speed_of) {
  const PlannedPromise::Closest worst = JudgeAt(snapshot, speed_of, 0).worst;
  return {static_cast<int64_t>(worst.value_ns), static_cast<int64_t>(worst.limit_ns)};
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

LatencyAtSlowdowns LatencyAt(const Snapshot& snapshot, absl::Span<const double> slowdowns,
                             int64_t delay_ns) {
  const AtSpeeds judged = JudgeAt(
      snapshot, [&](size_t app) { return 1 / slowdowns[app]; }, delay_ns);
  return {judged.kept, ShiftOf(judged.worst)};
}

}  // namespace gpushare::core
