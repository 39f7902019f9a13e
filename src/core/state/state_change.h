// The one place where a task's state changes, so every transition is checked against the table in
// task_state.h.

#ifndef GPUSHARE_SRC_CORE_STATE_STATE_CHANGE_H_
#define GPUSHARE_SRC_CORE_STATE_STATE_CHANGE_H_

#include <cassert>

#include "src/core/state/task.h"
#include "src/core/state/task_state.h"

namespace gpushare::core {

inline void SetState(Task& task, TaskState next) {
  [[maybe_unused]] const TaskState current = task.state.load(std::memory_order_relaxed);
  assert((current == next || IsLegal(current, next)) && "a move that the state table forbids");
  task.state.store(next, std::memory_order_release);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_STATE_CHANGE_H_
