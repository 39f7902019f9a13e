// What the cost model may know of a task or a query.
//
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_STATE_FEATURES_H_
#define GPUSHARE_SRC_CORE_STATE_FEATURES_H_

#include "src/core/seams/cost_model.h"
#include "src/core/state/task.h"

namespace gpushare::core {

inline TaskFeatures FeaturesOf(const Task& task) {
  TaskFeatures features;
  features.kernel = task.work.kernel;
  features.kind = task.work.kind;
  features.app = task.app->slot + 1;
  features.block_tasks = task.work.kind == TaskKind::kKernel ? task.work.block_tasks : 0;
  features.bytes = task.work.kind == TaskKind::kMemcpy ? task.work.block_tasks : 0;
  features.direction = task.work.copy.direction;
  features.pinned = task.work.copy.pinned;
  features.declared_ns = task.work.declared_ns;
  features.app_id = AppId{task.app->id.load(std::memory_order_relaxed)};
  return features;
}

inline QueryFeatures FeaturesOf(const QueryState& query) {
  return {AppId{query.app->id.load(std::memory_order_relaxed)}, query.input_size};
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_FEATURES_H_
