// What each app of a run was promised and what it got, from the run's event log.
//
// Explain() adds them to the slowest tickets. The index of the logs has the promises and the tail
// account; latencies and held times come from the events.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_GUARANTEES_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_GUARANTEES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/events/event_index.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

struct AppGuarantee {
  std::string app;
  bool latency_critical = false;
  // LC: the promise, and the queries that ended inside the window.
  bool has_promise = false;  // the index has it
  LcPromise promise;
  int64_t queries = 0;
  int64_t p50_ns = 0;
  int64_t p99_ns = 0;
  double p50_over_alone = 0;  // 0: the p50 alone is unknown
  double p99_over_alone = 0;  // 0: the p99 alone is unknown
  double late_share = 0;      // of the queries: above the target or the bound
  // BE: for how long the heads of its queues were held, the longest first. The reason NONE stands
  // for one that the library logged before the window.
  std::vector<HeldTime> held;
};

// The apps of the index in its order.
std::vector<AppGuarantee> GuaranteesOf(const EventIndexEntry& run,
                                       const std::vector<gpushare_event>& events);

// From the first event to the last one.
int64_t WindowNs(const std::vector<gpushare_event>& events);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_GUARANTEES_H_
