// The verb "drop" of late queries. See late_queries.h.

#include "src/core/flow/verbs/late_queries.h"

#include <algorithm>

#include "src/core/base/limits.h"
#include "src/core/base/saturating.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/state/backlog.h"
#include "src/core/state/query_waits.h"

namespace gpushare::core {
namespace {

// Tasks of begun queries that one look passes in a queue: these wait for tickets of other work.
constexpr int kBegunPassed = 32;

bool DropsLate(const App& app) {
  return app.options.drop_late && app.options.app_class == AppClass::kLatencyCritical;
}

// The query's predicted time alone, with its error bar; 0: unknown, or longer than its target.
int64_t OwnNs(const Task& task) {
  const Prediction& predicted = task.progress.predicted;
  if (!predicted.trained) return 0;
  const int64_t own_ns = task.query->solo_ns + predicted.error_ns;
  return own_ns > task.app->options.promise.target_ns ? 0 : own_ns;
}

// What is left of the app's work on the device. The first task counts as served since it became the
// first, at most for the mean time of one.
int64_t AheadNs(const Flow& flow, const App& app) {
  const LcOnDevice& there = app.on_device;
  const int32_t tasks = std::max(1, app.tasks_in_flight);
  const int64_t served_ns =
      std::clamp<int64_t>(flow.now_ns - there.first_since_ns, 0, there.issued_ns / tasks);
  return there.issued_ns - served_ns;
}

// The last moment at which the waiting task's query is not too late; kNever: it has begun.
TimeNs LatestNs(const Flow& flow, const Task& task) {
  const QueryState& query = *task.query;
  if (query.dropped) return 0;
  if (HasBegun(query)) return kNever;
  const int64_t own_ns = OwnNs(task);
  const int64_t ahead_ns = own_ns > 0 ? AheadNs(flow, *task.app) : 0;
  return SaturatingSubtract(query.deadline_ns, own_ns + ahead_ns);
}

void Drop(Flow& flow, Task& task) {
  task.query->dropped = true;
  Unlink(flow, task);
  FinishTask(flow, task, Verdict::kDropped);
}

// Drops what is too late at the begin of the queue. Returns when to look again.
TimeNs DropOf(Flow& flow, Queue& queue, int& drops_left) {
  int passed = 0;
  for (Task* task = queue.head; task != nullptr && passed < kBegunPassed;) {
    Task* const next = task->progress.next;
    const TimeNs latest_ns = LatestNs(flow, *task);
    if (latest_ns == kNever) {
      ++passed;
    } else if (latest_ns >= flow.now_ns) {
      return latest_ns + 1;
    } else if (drops_left-- > 0) {
      Drop(flow, *task);
    } else {
      return kNever;  // the drops ask for the next plan
    }
    task = next;
  }
  return kNever;
}

}  // namespace

TimeNs DropLateQueries(Flow& flow) {
  TimeNs next_ns = kNever;
  if (!flow.drops_late) return next_ns;
  int drops_left = kBatch;
  for (int i = 0; i < flow.backlog.size() && drops_left > 0; ++i) {
    Queue& queue = *flow.backlog[i];
    if (!DropsLate(*queue.app)) continue;
    next_ns = std::min(next_ns, DropOf(flow, queue, drops_left));
    if (queue.head == nullptr) --i;  // another queue took its place
  }
  return next_ns;
}

bool WaitsForItsTurn(Flow& flow, const Task& head) {
  if (!DropsLate(*head.app)) return false;
  const LcOnDevice& there = head.app->on_device;
  if (LatestNs(flow, head) < flow.now_ns) {
    flow.dirty = true;  // the next plan drops it
    return true;
  }
  if (HasBegun(*head.query) || there.queries == 0) return false;
  const int64_t own_ns = OwnNs(head);
  if (own_ns == 0 && head.progress.predicted.trained) return true;
  const TimeNs left_ns = SaturatingSubtract(head.query->deadline_ns, flow.now_ns);
  const bool ends_early = own_ns > 0 && 2 * AheadNs(flow, *head.app) + own_ns <= left_ns;
  return there.queries > 1 && !ends_early;
}

}  // namespace gpushare::core
