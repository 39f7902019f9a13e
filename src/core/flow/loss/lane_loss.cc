// Lanes given up and made again. See lane_loss.h.

#include "src/core/flow/loss/lane_loss.h"

#include "absl/status/status.h"
#include "src/core/base/exhaustion.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/log/events.h"
#include "src/core/seams/native_code.h"

namespace gpushare::core {
namespace {

bool IsOnLane(const Task& task, LaneIndex lane) {
  for (const Part& part : task.progress.parts) {
    if (part.lane == lane || part.order_lane == lane) return true;
  }
  return false;
}

template <class List>
void TimeOutOnLane(Flow& flow, const List& running, LaneIndex lane) {
  for (int i = 0; i < running.size();) {
    if (IsOnLane(*running[i], lane)) {
      TimeOutTask(flow, *running[i], lane);  // another task takes index i
    } else {
      ++i;
    }
  }
}

// Asks the device. An evictable lane on which evictions are blocked is made as one that is not.
absl::Status MakeAgain(Device& device, LaneIndex lane, LaneSpec& spec) {
  absl::Status made = device.ReplaceLane(lane, spec);
  if (!spec.evictable || !absl::IsDeadlineExceeded(made)) return made;
  spec.evictable = false;
  return device.ReplaceLane(lane, spec);
}

}  // namespace

void TimeOutTask(Flow& flow, Task& task, LaneIndex lane) {
  // Its launch on the other side of a split is healthy, but the task has failed.
  for (const Part& part : task.progress.parts) {
    if (part.lane != lane && part.epoch != 0) {
      EvictLane(flow, part.lane, 0, task.record.ticket, Reason::kNone);
    }
  }
  DropParts(flow, task);
  LearnPartsLost(flow);
  FinishTask(flow, task, Verdict::kTimedOut);
}

void GiveUpLane(Flow& flow, LaneIndex lane) {
  flow.device->AbandonLane(lane);
  flow.Emit(LaneAbandoned{.lane = lane});
  TimeOutOnLane(flow, flow.running_be, lane);
  TimeOutOnLane(flow, flow.running_lc, lane);
  if (flow.lanes.GiveUp(lane)) {
    flow.lost_lanes.Add(lane);
  } else if (!flow.lanes.HasAnother(lane)) {
    LoseDevice(flow, 0);
  }
}

void ReplaceLanes(Flow& flow, absl::Span<const LaneIndex> lost, Mutex& tick_mutex) {
  for (const LaneIndex lane : lost) {
    if (flow.device_lost.load()) return;  // it takes no further call
    LaneSpec spec = flow.lanes.SpecOf(lane);
    const bool evictable = spec.evictable;
    const absl::Status made = CatchExhaustion([&] { return MakeAgain(*flow.device, lane, spec); });
    const MutexLock lock(&tick_mutex);
    flow.now_ns = flow.device->NowNs();
    flow.dirty = true;
    if (made.ok()) {
      flow.lanes.Install(lane, spec.evictable, flow.now_ns);
      if (spec.evictable == evictable) continue;
      flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    flow.lanes.Remove(lane);
    if (IsDeviceLost(made) || !flow.lanes.HasAnother(lane)) {
      LoseDevice(flow, NativeCodeOf(made));
    }
  }
}

}  // namespace gpushare::core
