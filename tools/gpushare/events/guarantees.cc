#include "tools/gpushare/events/guarantees.h"

#include <algorithm>
#include <map>

#include "tools/gpushare/events/held_times.h"

namespace gpushare::tool {

namespace {

// A latency above this breaks the promise; GPUSHARE_NEVER: there is none.
int64_t LimitOf(const LcPromise& promise) {
  int64_t limit_ns = promise.target_ns > 0 ? promise.target_ns : GPUSHARE_NEVER;
  if (promise.p99_bound > 0 && promise.p99_alone_ns > 0) {
    const double bound_ns = promise.p99_bound * static_cast<double>(promise.p99_alone_ns);
    if (bound_ns < 9e18) limit_ns = std::min(limit_ns, static_cast<int64_t>(bound_ns));
  }
  return limit_ns;
}

double Ratio(int64_t value, int64_t of) {
  return of > 0 ? static_cast<double>(value) / static_cast<double>(of) : 0;
}

void FillLatencies(std::vector<int64_t> latencies_ns, AppGuarantee& app) {
  std::sort(latencies_ns.begin(), latencies_ns.end());
  app.queries = static_cast<int64_t>(latencies_ns.size());
  app.p50_ns = Quantile(latencies_ns, 0.5);
  app.p99_ns = Quantile(latencies_ns, 0.99);
  app.p50_over_alone = Ratio(app.p50_ns, app.promise.p50_alone_ns);
  app.p99_over_alone = Ratio(app.p99_ns, app.promise.p99_alone_ns);
  const auto late =
      std::upper_bound(latencies_ns.begin(), latencies_ns.end(), LimitOf(app.promise));
  app.late_share = Ratio(latencies_ns.end() - late, app.queries);
}

}  // namespace

std::vector<AppGuarantee> GuaranteesOf(const EventIndexEntry& run,
                                       const std::vector<gpushare_event>& events) {
  std::map<uint32_t, std::vector<int64_t>> latencies_ns;
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_QUERY_ENDED) latencies_ns[event.app_id].push_back(event.b);
  }
  std::map<uint32_t, std::vector<HeldTime>> held = HeldTimesOf(events);
  std::vector<AppGuarantee> apps;
  for (const NamedId& named : run.apps) {
    AppGuarantee& app = apps.emplace_back();
    app.app = named.name;
    app.latency_critical = named.latency_critical;
    if (!named.latency_critical) {
      app.held = std::move(held[named.id]);
      continue;
    }
    for (const LcPromise& promise : run.promises) {
      if (promise.app_id != named.id) continue;
      app.has_promise = true;
      app.promise = promise;
    }
    FillLatencies(std::move(latencies_ns[named.id]), app);
  }
  return apps;
}

int64_t WindowNs(const std::vector<gpushare_event>& events) {
  return events.empty() ? 0 : events.back().time_ns - events.front().time_ns;
}

}  // namespace gpushare::tool
