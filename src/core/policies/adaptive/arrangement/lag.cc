// The lag rule (lag.h).

#include "src/core/policies/adaptive/arrangement/lag.h"

#include <algorithm>

#include "src/core/policies/adaptive/arrangement/tuning.h"

namespace gpushare::core {
namespace {

// LC speeds on the LC side: beside the worst of the BE kernels that may run there, and with the BE
// side empty.
struct SideSpeeds {
  double beside = 1;
  double alone = 1;
  double stays_ns = 0;  // how long evicted BE work stays on the other side
};

SideSpeeds SpeedsOn(const PairTable& pairs, const Question& question,
                    const Arrangement& arrangement, int32_t app) {
  SideSpeeds speeds;
  for (int32_t i = 0; i < question.be_count; ++i) {
    const BeTerm& be = question.be[static_cast<size_t>(i)];
    if (arrangement.sides[static_cast<size_t>(be.kernel)] == Sides::kNone) continue;
    const PairOption& option = pairs.at(app, be.kernel, arrangement.split);
    speeds.beside = std::min<double>(speeds.beside, option.lc_speed);
    speeds.alone = std::min<double>(speeds.alone, option.lc_speed_alone);
    speeds.stays_ns = std::max(speeds.stays_ns, static_cast<double>(be.stays_ns));
  }
  // An empty BE side slows nobody: a speed measured below the other one is noise.
  speeds.beside = std::max(speeds.beside, kTie);
  speeds.alone = std::max(speeds.alone, speeds.beside);
  return speeds;
}

// The lag of an app whose queries go to the side, with what is in flight there.
double LagOnSide(const LcAppView& app, const SideSpeeds& speeds) {
  const auto solo_ns = static_cast<double>(app.solo_ns);
  const auto age_ns = static_cast<double>(app.service_age_ns);
  // The evidence counts the first query as served at the whole device's speed.
  const double served_ns = std::min(solo_ns, age_ns * speeds.beside);
  const int32_t in_flight = std::min(app.active_queries, app.tasks_in_flight);
  const double left_ns = std::max(0.0, in_flight * solo_ns - served_ns);
  return static_cast<double>(app.lag_ns) + std::min(solo_ns, age_ns) - served_ns +
         left_ns * (1 / speeds.alone - 1);
}

// The mean of the longest eviction that every budget accepts, of kernels that return to the LC
// side.
double AcceptedDelay(const Question& question, const Arrangement& arrangement) {
  int64_t longest_ns = 0;
  for (int32_t i = 0; i < question.be_count; ++i) {
    const BeTerm& be = question.be[static_cast<size_t>(i)];
    if (arrangement.sides[static_cast<size_t>(be.kernel)] != Sides::kBoth) continue;
    longest_ns = std::max(longest_ns, be.shift_ns);
  }
  return static_cast<double>(longest_ns) / 2;
}

bool Fits(const Snapshot& snapshot, const Question& question, const Arrangement& arrangement,
          int32_t index) {
  const LcAppView& app = snapshot.lc_apps[static_cast<size_t>(index)];
  const int64_t slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
  if (app.solo_ns <= 0 || slack_ns == kNever) return true;
  const SideSpeeds speeds = SpeedsOn(snapshot.pairs, question, arrangement, index);
  const auto solo_ns = static_cast<double>(app.solo_ns);
  double more_ns = solo_ns * (1 / speeds.beside - 1);
  if (speeds.stays_ns > 2 * solo_ns) more_ns += speeds.stays_ns / 2 * (1 - speeds.beside);
  const auto budget_ns = static_cast<double>(slack_ns);
  if (app.active_queries == 0) return more_ns <= budget_ns;
  const bool here = snapshot.in_force.split == arrangement.split;
  const double lag_ns = here ? LagOnSide(app, speeds) : static_cast<double>(app.lag_ns);
  const double counted_ns = std::max(0.0, lag_ns - AcceptedDelay(question, arrangement));
  return counted_ns + more_ns <= (here ? 1 : kLagReturn) * budget_ns;
}

}  // namespace

bool MayTakeQueries(const Snapshot& snapshot, const Question& question,
                    const Arrangement& arrangement) {
  int32_t active = 0;
  for (const LcAppView& app : snapshot.lc_apps) active += app.active_queries > 0 ? 1 : 0;
  if (active > 1) return false;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    if (active > 0 && snapshot.lc_apps[a].active_queries == 0) continue;
    if (!Fits(snapshot, question, arrangement, static_cast<int32_t>(a))) return false;
  }
  return true;
}

}  // namespace gpushare::core
