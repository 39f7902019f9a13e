// Which launches take their block tasks by their task's claim counter.

#ifndef GPUSHARE_SRC_CORE_SEAMS_LAUNCH_CLAIMS_H_
#define GPUSHARE_SRC_CORE_SEAMS_LAUNCH_CLAIMS_H_

#include "src/core/base/types.h"

namespace gpushare::core {

// Such a launch names a counter and an epoch, reads an eviction word where its lane has one, and
// reports how many block tasks it did.
constexpr bool ClaimsBlockTasks(Form form) {
  return form == Form::kWorkers || form == Form::kFused;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_LAUNCH_CLAIMS_H_
