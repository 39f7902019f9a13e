// Why nothing that was submitted can go on by itself, as a sentence for the application.
//
// A wait without a deadline that meets this ends only if the application acts: resumes, ends a
// region or a query, cancels a task. The library says so once, because it looks like a hang.
// Threads: under the lock of Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_WAITING_STALL_H_
#define GPUSHARE_SRC_CORE_FLOW_WAITING_STALL_H_

#include <cstdint>
#include <string>

#include "src/core/state/flow.h"

namespace gpushare::core {

// How long the flow rests, in real time, before the log says so: much longer than an application
// takes between two calls.
inline constexpr int64_t kRestReportNs = 1'000'000'000;

// For a flow that is at rest: nothing is on the device, and no plan is due. A clause without a
// full stop.
std::string ReasonOfRest(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_WAITING_STALL_H_
