// Accounts of jobs. See jobs.h.

#include "src/core/flow/verbs/queries/jobs.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gpushare::core {

void NoteOverrun(Flow& flow, QueryState& query) {
  if (std::exchange(query.overran, true)) return;
  RealTimeShare& share = query.app->real_time;
  if (share.overruns++ > 0) return;
  try {
    flow.reports.push_back(absl::StrCat(
        "A job of app '", query.app->options.name, "' runs longer than the ", share.worst_ns,
        " ns of its worst case on its SMs, so its bounds do not hold; measure its worst case "
        "again. "
        "Further overruns are counted (gpushare_app_guarantee), and not logged."));
  } catch (const std::bad_alloc&) {  // for the sentence
  }
}

void NoteJobEnded(Flow& flow, QueryState& query) {
  App& app = *query.app;
  RealTimeShare& share = app.real_time;
  if (share.partition < 0 || query.abandoned) return;
  // Beside what leaves its SMs a job takes as much longer as the plan charged.
  if (query.done_ns > share.worst_ns + flow.partition_overhead_ns) NoteOverrun(flow, query);
  const int64_t response_ns = flow.now_ns - query.arrival_ns;
  ++share.jobs;
  share.response_ns_max = std::max(share.response_ns_max, response_ns);
  if (response_ns > app.options.real_time.Deadline()) ++share.deadlines_missed;
}

}  // namespace gpushare::core
