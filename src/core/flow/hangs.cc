// Hung launches and blocked evictions. See hangs.h.

#include "src/core/flow/hangs.h"

#include <algorithm>

#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/log/events.h"

namespace gpushare::core {
namespace {

// The lane of the first hung launch, or kNoLane. Lowers `next_check` to the earliest limit seen.
LaneIndex FindHungLane(const Flow& flow, absl::Span<Task* const> tasks, TimeNs* next_check) {
  for (const Task* task : tasks) {
    for (const Part& part : task->progress.parts) {
      const TimeNs since = std::max(part.launched_ns, flow.lanes.lane(part.lane).progress_ns);
      if (flow.now_ns - since >= part.hang_limit_ns) {
        // The part's stream hangs; both parts of a fused launch are on the first part's stream.
        const bool second =
            part.order_lane != kNoLane && flow.lanes.lane(part.order_lane).usable.load();
        return second ? part.order_lane : part.lane;
      }
      *next_check = std::min(*next_check, since + part.hang_limit_ns);
    }
  }
  return kNoLane;
}

bool IsOnLane(const Task& task, LaneIndex lane) {
  for (const Part& part : task.progress.parts) {
    if (part.lane == lane || part.order_lane == lane) return true;
  }
  return false;
}

template <class List>
void TimeOutOnLane(Flow& flow, const List& running, LaneIndex lane) {
  for (int i = 0; i < running.size();) {
    Task& task = *running[i];
    if (!IsOnLane(task, lane)) {
      ++i;
      continue;
    }
    // Its launch on the other side of a split is healthy, but the task has failed.
    for (const Part& part : task.progress.parts) {
      if (part.lane != lane && part.epoch != 0) {
        EvictLane(flow, part.lane, 0, task.record.ticket, Reason::kNone);
      }
    }
    DropParts(flow, task);
    FinishTask(flow, task, Verdict::kTimedOut);  // another task takes index i
  }
}

void AbandonLane(Flow& flow, LaneIndex lane) {
  flow.device->AbandonLane(lane);
  flow.counters.hung.fetch_add(1, std::memory_order_relaxed);
  flow.Emit(LaneAbandoned{.lane = lane});
  TimeOutOnLane(flow, flow.running_be, lane);
  TimeOutOnLane(flow, flow.running_lc, lane);
  // A class without lanes holds its tasks; the log has the reason.
  if (flow.lanes.lane(lane).usable.load()) {
    const int blocked = flow.lanes.lanes_blocked();
    flow.lanes.Replace(*flow.device, lane).IgnoreError();
    flow.counters.evictions_blocked.fetch_add(flow.lanes.lanes_blocked() - blocked,
                                              std::memory_order_relaxed);
  }
  flow.dirty = true;
}

}  // namespace

bool CheckHangs(Flow& flow) {
  if (flow.now_ns < flow.hang_check_ns) return false;
  bool found = false;
  for (;;) {
    TimeNs next = kNever;
    LaneIndex lane = FindHungLane(flow, flow.running_be.span(), &next);
    if (lane == kNoLane) lane = FindHungLane(flow, flow.running_lc.span(), &next);
    if (lane == kNoLane) {
      flow.hang_check_ns = next;
      return found;
    }
    AbandonLane(flow, lane);
    found = true;
  }
}

void CheckBlockedEvictions(Flow& flow) {
  for (Task* task : flow.running_be) {
    if (task->progress.eviction_p99_ns == kNever) continue;
    for (Part& part : task->progress.parts) {
      if (part.blocked_eviction || !IsLeaving(flow.gate, part)) continue;
      if (part.eviction_seen_ns == 0) part.eviction_seen_ns = flow.now_ns;
      if (flow.now_ns - part.eviction_seen_ns <= BlockedEvictionNs(*task)) continue;
      part.blocked_eviction = true;
      flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

}  // namespace gpushare::core
