// How long the planner held the heads of an app, by reason.
//
// The verb "hold" begins such a time, and a launch, another reason or the task's end counts it.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_HOLD_TIME_H_
#define GPUSHARE_SRC_CORE_STATE_HOLD_TIME_H_

#include <cstddef>

#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/core/state/task.h"

namespace gpushare::core {

// The row of App::held_ns; kHoldReasons for a reason that holds nothing, or of a user's policy.
constexpr size_t HoldRow(Reason reason) {
  const auto row = static_cast<size_t>(reason) - static_cast<size_t>(Reason::kHoldHeadroom);
  return row < kHoldReasons ? row : kHoldReasons;
}

// Counts the time for which the task was held until now. It is no longer held.
inline void CountHeld(Task& task, TimeNs now_ns) {
  if (task.progress.held_since_ns == 0) return;
  const size_t row = HoldRow(task.record.hold_reason);
  if (row < kHoldReasons) task.app->held_ns[row] += now_ns - task.progress.held_since_ns;
  task.progress.held_since_ns = 0;
  task.queue->held = Reason::kNone;  // it may be the queue's head
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_HOLD_TIME_H_
