// Checks the flow's tables against each other, between two Ticks. For tests and debugging.

#ifndef GPUSHARE_SRC_CORE_FLOW_FLOW_CHECK_H_
#define GPUSHARE_SRC_CORE_FLOW_FLOW_CHECK_H_

#include "absl/status/status.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// INTERNAL with the first contradiction. Compared: CapSMs and lane counts with parts, T_q with
// issued tasks, reservations with the device, the gate with LC tasks; and every BE launch on SMs of
// LC work that evicts must be leaving. Threads: the one that runs Tick.
absl::Status CheckFlow(const Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_FLOW_CHECK_H_
