// The LC fast path: the submitter launches, without waiting for the scheduler.
//
//   enter the gate (one atomic) -> read the route that the launch stage last published
//   -> evict BE work that overlaps the route's place -> launch
//
// SubmitTask then posts a started-record, and Tick adopts the task. Why no eviction is lost:
// state/shared/lc_gate.h. Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_FAST_PATH_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_FAST_PATH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

enum class FastPathResult : uint8_t {
  kNotTaken = 0,  // post it in the ring
  kLaunched = 1,
  kFailed = 2,  // the device refused it; the flow completes it
};
FastPathResult TryFastPath(Flow& flow, Task& task);

// Launches the one part that the submitter has prepared, in the order of its lane.
FastPathResult LaunchPrepared(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_FAST_PATH_H_
