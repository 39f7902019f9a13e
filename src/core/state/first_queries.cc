// What first queries say of the delay by BE work. See first_queries.h.

#include "src/core/state/first_queries.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/tuning.h"
#include "src/core/state/start_delay.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUnknown = -1;

bool StatesABound(const App& app) { return app.options.p99_bound > 0; }

// The mean delay that the task's eviction is expected to cause.
int64_t DelayBy(const Task& task) {
  const Progress& progress = task.progress;
  if (progress.blocking_ns == kNever) return kUnknown;
  if (std::any_of(progress.parts.begin(), progress.parts.end(),
                  [](const Part& part) { return part.place != kWholeDevice; })) {
    return kUnknown;
  }
  if (!task.IsSegmented() || !task.work.kernel->cut.blocking.known()) return progress.blocking_ns;
  const auto mean_ns = static_cast<int64_t>(task.work.kernel->cut.blocking.mean_ns());
  return progress.blocking_mean_ns > 0 ? std::min(mean_ns, progress.blocking_mean_ns) : mean_ns;
}

// Of all BE work on the device; 0: there is none.
int64_t DelayByAll(const Flow& flow) {
  int64_t longest_ns = 0;
  for (const Task* const task : flow.running_be) {
    if (task->work.kind == TaskKind::kMemcpy) continue;
    const int64_t delay_ns = DelayBy(*task);
    if (delay_ns == kUnknown) return kUnknown;
    longest_ns = std::max({longest_ns, delay_ns, int64_t{1}});
  }
  return longest_ns;
}

// Without BE work since the app's last query, but not for long: an idle device may change its
// clock.
bool IsQuiet(const Flow& flow, const App& app) {
  return flow.query_end_app == &app && flow.be_left_ns <= flow.query_end_ns &&
         flow.now_ns - flow.be_left_ns < kStartRecentNs;
}

}  // namespace

void MarkFirst(Flow& flow, QueryState& query) {
  App& app = *query.app;
  app.start.free_until_ns = 0;
  query.first_delay_ns = kUnknown;
  if (flow.first_query != nullptr || !StatesABound(app)) return;
  const int64_t delay_ns = DelayByAll(flow);
  if (delay_ns != 0 || IsQuiet(flow, app)) query.first_delay_ns = delay_ns;
}

void LearnFirst(Flow& flow, const QueryState& query) {
  App& app = *query.app;
  if (!StatesABound(app)) return;
  if (query.first_delay_ns != kUnknown && query.done_ns > 0 && !query.confined) {
    NoteFirst(app.start, flow.now_ns - query.arrival_ns, query.first_delay_ns, flow.now_ns);
  }
  const int32_t row = app.plan_index;
  if (flow.first_query != nullptr || row < 0 || row >= flow.buffers.lc_apps.size()) return;
  FreeNext(app.start, flow.buffers.lc_apps[row].blocking_budget_ns, flow.now_ns);
}

int64_t StartExcess(const Flow& flow) {
  double most_ns = 0;
  for (const App* const app : flow.lc_apps) {
    if (StatesABound(*app)) most_ns = std::max(most_ns, ExcessOf(app->start, flow.now_ns));
  }
  // It changes by steps, and not between two: each change makes all views of heads anew.
  const auto now_ns = static_cast<double>(flow.start_excess_ns);
  if (std::abs(most_ns - now_ns) < 0.75 * kStartStepNs) return flow.start_excess_ns;
  return static_cast<int64_t>(std::round(most_ns / kStartStepNs) * kStartStepNs);
}

}  // namespace gpushare::core
