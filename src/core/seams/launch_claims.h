// Which launches take their block tasks by their task's claim counter.

#ifndef GPUSHARE_SRC_CORE_SEAMS_LAUNCH_CLAIMS_H_
#define GPUSHARE_SRC_CORE_SEAMS_LAUNCH_CLAIMS_H_

#include "src/core/base/types.h"

namespace gpushare::core {

// Has persistent workers: their number may be bounded, and an eviction may keep some of them.
constexpr bool HasWorkers(Form form) { return form == Form::kWorkers || form == Form::kFused; }

// Such a launch names a counter and an epoch, leaves by its lane's eviction word where it has one,
// and reports how many block tasks it did. The block tasks of kSegments are the graph's segments.
constexpr bool ClaimsBlockTasks(Form form) { return HasWorkers(form) || form == Form::kSegments; }

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_LAUNCH_CLAIMS_H_
