// Hung launches and blocked evictions. See hangs.h.

#include "src/core/flow/loss/hangs.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/core/base/tuning.h"
#include "src/core/flow/loss/lane_loss.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/hang_limit.h"

namespace gpushare::core {
namespace {

struct HungLaunch {
  Task* task = nullptr;  // null: none hangs
  LaneIndex lane = kNoLane;
};

// A submitter may launch on a lane while it is given up. The launch is then on the old stream, and
// says nothing about the lane that replaced it.
bool IsOnOldStream(const Part& part, const Lane& lane) {
  return part.launched_ns < lane.replaced_ns;
}

// Whether `other` was launched before `task` and may be what the part waits for: the lane's order,
// or room on its SMs.
bool IsAhead(const Flow& flow, const Task& other, const Task& task, const Part& part) {
  const bool copy = task.work.kind == TaskKind::kMemcpy || other.work.kind == TaskKind::kMemcpy;
  for (const Part& its : other.progress.parts) {
    const bool earlier = its.launched_ns != part.launched_ns
                             ? its.launched_ns < part.launched_ns
                             : other.progress.sequence < task.progress.sequence;
    const bool shares = (flow.lanes.place(part.place).overlaps >> its.place & 1) != 0;
    const bool in_order = its.lane == part.lane || its.lane == part.after_lane;
    if (earlier && (in_order || (shares && !copy))) return true;
  }
  return false;
}

bool WaitsForAnEarlierOne(const Flow& flow, const Task& task, const Part& part) {
  const auto ahead = [&](const Task* other) {
    return other != &task && IsAhead(flow, *other, task, part);
  };
  return std::any_of(flow.running_be.begin(), flow.running_be.end(), ahead) ||
         std::any_of(flow.running_lc.begin(), flow.running_lc.end(), ahead);
}

enum class Progressing : uint8_t { kNo = 0, kYes = 1, kNotKnownYet = 2 };

// Whether the task's launches claimed block tasks since the flow last looked. A look that does not
// answer is no evidence: other copies may stand in front of it. A device that answers none for
// another hang limit makes no progress.
Progressing LookAtClaims(Flow& flow, Task& task, const Part& part) {
  Progress& progress = task.progress;
  const std::optional<int64_t> claims = flow.device->ReadClaims(progress.counter);
  if (!claims.has_value()) {
    if (progress.claims_looks++ == 0) progress.claims_asked_ns = flow.now_ns;
    // A flow that is driven rarely asks rarely: count its looks, too.
    const bool waits = flow.now_ns - progress.claims_asked_ns < part.hang_limit_ns ||
                       progress.claims_looks < kClaimsLooksMin;
    return waits ? Progressing::kNotKnownYet : Progressing::kNo;
  }
  progress.claims_looks = 0;
  const bool moved = *claims != progress.claims_seen;
  progress.claims_seen = *claims;
  return moved ? Progressing::kYes : Progressing::kNo;
}

// A launch that has shown nothing for its limit: what the device and the launches ahead of it say.
Progressing LookAt(Flow& flow, Task& task, Part& part) {
  if (WaitsForAnEarlierOne(flow, task, part)) {
    part.alive_ns = flow.now_ns;
    return Progressing::kYes;
  }
  if (!ShowsClaims(flow, part)) return Progressing::kNo;
  const Progressing answer = LookAtClaims(flow, task, part);
  if (answer == Progressing::kYes) {
    for (Part& each : task.progress.parts) each.alive_ns = flow.now_ns;
  }
  return answer;
}

// When the part last showed progress.
TimeNs ProgressOf(const Part& part, const Lane& lane) {
  const TimeNs own = std::max(part.launched_ns, part.alive_ns);
  return IsOnOldStream(part, lane) ? own : std::max(own, lane.progress_ns);
}

// The first hung launch. Lowers `next_check` to the next time at which one may be found.
HungLaunch FindHung(Flow& flow, absl::Span<Task* const> tasks, TimeNs* next_check) {
  for (Task* task : tasks) {
    for (Part& part : task->progress.parts) {
      TimeNs due = ProgressOf(part, flow.lanes.lane(part.lane)) + part.hang_limit_ns;
      if (flow.now_ns >= due) {
        const Progressing answer = LookAt(flow, *task, part);
        if (answer == Progressing::kNo) {
          // The part's stream hangs; both parts of a fused launch are on the first part's stream.
          const bool second =
              part.order_lane != kNoLane && flow.lanes.lane(part.order_lane).usable.load();
          return {task, second ? part.order_lane : part.lane};
        }
        due = flow.now_ns + (answer == Progressing::kYes ? part.hang_limit_ns : kClaimsLookNs);
      }
      *next_check = std::min(*next_check, due);
    }
  }
  return {};
}

bool IsOnOldStream(const Flow& flow, const Task& task, LaneIndex lane) {
  for (const Part& part : task.progress.parts) {
    if (part.lane == lane && IsOnOldStream(part, flow.lanes.lane(lane))) return true;
  }
  return false;
}

}  // namespace

bool CheckHangs(Flow& flow) {
  if (flow.now_ns < flow.hang_check_ns) return false;
  bool found = false;
  for (;;) {
    TimeNs next = kNever;
    HungLaunch hung = FindHung(flow, flow.running_be.span(), &next);
    if (hung.task == nullptr) hung = FindHung(flow, flow.running_lc.span(), &next);
    if (hung.task == nullptr) {
      flow.hang_check_ns = next;
      return found;
    }
    found = flow.dirty = true;
    flow.counters.hung.fetch_add(1, std::memory_order_relaxed);
    if (IsOnOldStream(flow, *hung.task, hung.lane)) {
      TimeOutTask(flow, *hung.task, hung.lane);
    } else {
      GiveUpLane(flow, hung.lane);
    }
  }
}

void CheckBlockedEvictions(Flow& flow) {
  for (Task* task : flow.running_be) {
    if (task->progress.eviction_p99_ns == kNever) continue;
    for (Part& part : task->progress.parts) {
      if (part.blocked_eviction || !IsLeaving(flow.gate, part)) continue;
      if (part.form == Form::kSegments) continue;  // may wait for LC work (complete.cc)
      if (part.eviction_seen_ns == 0) part.eviction_seen_ns = flow.now_ns;
      if (flow.now_ns - part.eviction_seen_ns <= BlockedEvictionNs(*task)) continue;
      part.blocked_eviction = true;
      flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

}  // namespace gpushare::core
