// The flow's tables held against each other, between two Ticks. For tests and debugging.

#ifndef GPUSHARE_SRC_CORE_FLOW_FLOW_CHECK_H_
#define GPUSHARE_SRC_CORE_FLOW_FLOW_CHECK_H_

#include "absl/status/status.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// INTERNAL with the first contradiction: CapSMs against parts, lane counts against parts, T_q
// against issued tasks, reservations against the device, and no BE launch that LC work on its SMs
// did not tell to leave. Thread: the one that runs Tick.
absl::Status CheckFlow(const Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_FLOW_CHECK_H_
