// The LC fast path: the submitter launches, without waiting for the scheduler.
//
//   enter the gate (one atomic) -> read the route that plan last published -> evict the lanes that
//   must leave -> launch behind the leaving BE work -> post a started-record for the flow
//
// Safety: lc_gate.h. Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_FAST_PATH_H_
#define GPUSHARE_SRC_CORE_FLOW_FAST_PATH_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

enum class FastPathResult : uint8_t {
  kNotTaken = 0,  // post it in the ring
  kLaunched = 1,
  kFailed = 2,  // the device refused it; the flow completes it
};
FastPathResult TryFastPath(Flow& flow, Task& task);

// Launches the one part that the submitter has prepared. The lane's order is the queue's.
FastPathResult LaunchPrepared(Flow& flow, Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_FAST_PATH_H_
