// The life of a task: which state may follow which, in one table.
//
// Every change of a state is checked here, so the table is complete:
//
//   Free -> Submitted -> (Waiting ->) Ready -> Running -> Done
//                  |                    ^        |  ^
//                  | fast path          | rest   v  | some workers stay, or a part returns
//                  +-------> Running    +---- Evicting -> Done
//
// Any live state may fail. A task is cancelled in any live state; dropped only before it reaches
// the device; timed out only on it. A terminal state is left only when its slot is freed.
//
// Threads: pure functions, any.

#ifndef GPUSHARE_SRC_CORE_STATE_TASK_STATE_H_
#define GPUSHARE_SRC_CORE_STATE_TASK_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"
#include "src/core/base/types.h"

namespace gpushare::core {

inline constexpr int kTaskStateCount = 11;

namespace task_state_internal {

constexpr uint16_t StateSet(std::initializer_list<TaskState> states) {
  uint16_t set = 0;
  for (TaskState state : states) {
    set = static_cast<uint16_t>(set | (1u << static_cast<unsigned>(state)));
  }
  return set;
}

struct StateRow {
  TaskState state;
  const char* name;
  const char* meaning;
  uint16_t successors;
};

using enum TaskState;
inline constexpr std::array<StateRow, kTaskStateCount> kStates = {{
    {kFree, "free", "its slot belongs to no task", StateSet({kSubmitted})},
    {kSubmitted, "submitted", "it is in the submit queue",
     // kRunning: the LC fast path launches before admission sees the task.
     StateSet({kWaiting, kReady, kRunning, kFailed, kCancelled, kDropped})},
    {kWaiting, "waiting", "a ticket or an earlier task of its queue is not done",
     StateSet({kReady, kFailed, kCancelled, kDropped})},
    {kReady, "ready", "it is the head of its queue and the planner sees it",
     StateSet({kRunning, kFailed, kCancelled, kDropped})},
    {kRunning, "running", "at least one launch is on the device",
     // kReady: a slice or a cut copy ended and the rest is not launched yet.
     StateSet({kReady, kEvicting, kDone, kFailed, kCancelled, kTimedOut})},
    {kEvicting, "evicting", "its launches were evicted and one is still on the device",
     // kRunning: some workers were kept, or a new part runs beside the evicted one. kDone: the
     // workers had claimed the last block tasks before they saw the word.
     StateSet({kReady, kRunning, kDone, kFailed, kCancelled, kTimedOut})},
    {kDone, "done", "all of its work ran", StateSet({kFree})},
    {kFailed, "failed", "a launch failed or the device was lost", StateSet({kFree})},
    {kCancelled, "cancelled", "its owner cancelled it", StateSet({kFree})},
    {kDropped, "dropped", "it was late and its app drops late queries", StateSet({kFree})},
    {kTimedOut, "timed out", "the device never completed it", StateSet({kFree})},
}};

}  // namespace task_state_internal

// False for values outside the enumeration.
constexpr bool IsLegal(TaskState from, TaskState to) {
  const auto row = static_cast<size_t>(from);
  const auto bit = static_cast<size_t>(to);
  if (row >= kTaskStateCount || bit >= kTaskStateCount) return false;
  return (task_state_internal::kStates[row].successors >> bit & 1u) != 0;
}

// "running".
absl::string_view StateName(TaskState state);

// "running: at least one launch is on the device", for `explain` and messages. Points to static
// storage.
absl::string_view Describe(TaskState state);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_TASK_STATE_H_
