#include "tools/gpushare/colocate/load_plan.h"

#include <algorithm>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/random.h"
#include "tools/gpushare/scenario/arrivals.h"

namespace gpushare::tool {

namespace {

// Streams of random numbers from one seed: arrivals and think times of an app.
constexpr uint64_t kArrivalStream = 1;
constexpr uint64_t kThinkStream = 2;

uint64_t SeedOf(const Scenario& scenario, uint64_t stream, const LcApp& app) {
  return MixSeed(MixSeed(scenario.seed, stream), Fnv1a(app.name));
}

// The sum of the shares by which the load is divided.
double Shares(const std::vector<LcPlan>& plans) {
  double shares = 0;
  for (const LcPlan& plan : plans) {
    if (FollowsLoad(plan.app->arrivals)) shares += plan.app->share;
  }
  return shares;
}

}  // namespace

std::vector<LcPlan> PlanLoad(const Scenario& scenario, const std::vector<int>& lc, double load,
                             int64_t queries, const std::map<int, int64_t>& solo_ns) {
  std::vector<LcPlan> plans;
  for (const int index : lc) {
    LcPlan plan;
    plan.app = &scenario.lc[static_cast<size_t>(index)];
    plan.solo_ns = solo_ns.at(index);
    plan.think_seed = SeedOf(scenario, kThinkStream, *plan.app);
    plan.closed_queries = FollowsAnswers(plan.app->arrivals) ? queries : 0;
    plans.push_back(plan);
  }
  const double shares = Shares(plans);
  const auto gap_ns = [&](const LcPlan& plan) {
    return static_cast<double>(plan.solo_ns) * shares / (load * plan.app->share);
  };
  // Several apps get the same span, in which the slowest app makes the requested number of queries.
  // Otherwise an app with short queries would end long before the others.
  int64_t span_ns = scenario.duration_ns;
  if (plans.size() > 1 && span_ns == 0) {
    for (const LcPlan& plan : plans) {
      const ArrivalSpec& arrivals = plan.app->arrivals;
      const bool sporadic = arrivals.kind == ArrivalKind::kSporadic;
      if (!sporadic && !FollowsLoad(arrivals)) continue;
      const double gap = sporadic ? static_cast<double>(arrivals.period_ns) : gap_ns(plan);
      const double span = gap * static_cast<double>(queries);
      span_ns = std::max(span_ns, static_cast<int64_t>(std::min(span, 9e18)));
    }
  }
  for (LcPlan& plan : plans) {
    ArrivalRequest request;
    if (FollowsLoad(plan.app->arrivals)) {
      plan.load = load * plan.app->share / shares;
      request.mean_gap_ns = gap_ns(plan);
    }
    request.queries_max = plans.size() > 1 ? kQueriesMax : queries;
    request.duration_ns = span_ns;
    request.seed = SeedOf(scenario, kArrivalStream, *plan.app);
    plan.arrivals_ns = MakeArrivals(plan.app->arrivals, request);
    if (plan.arrivals_ns.empty() && plan.closed_queries == 0) {
      throw InputError("No query of app '" + plan.app->name + "' arrives within the duration of " +
                       std::to_string(span_ns) + " ns.");
    }
  }
  return plans;
}

}  // namespace gpushare::tool
