// A task's label in events.

#ifndef GPUSHARE_SRC_CORE_LOG_LABEL_H_
#define GPUSHARE_SRC_CORE_LOG_LABEL_H_

#include "src/core/log/events.h"
#include "src/core/state/task.h"

namespace gpushare::core {

inline TaskLabel LabelOf(const Task& task) {
  return {.ticket = task.record.ticket,
          .app = task.record.app,
          .app_class = task.app->options.app_class,
          .kernel = task.record.kernel};
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_LABEL_H_
