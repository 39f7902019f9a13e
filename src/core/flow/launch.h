// Stage 5, launch: turns a plan into device calls.
//
// Publishes the routes first, then evicts, then launches. BE launches pass the gate: epoch first,
// gate second (lc_gate.h). One task by itself is launch_one.h's, two in one launch
// fused_launch.h's. Runs on the thread that runs Tick, without a lock over a device call; the
// building of a request is shared with the LC fast path.

#ifndef GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_
#define GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_

#include "absl/status/status.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

void Launch(Flow& flow);

inline bool IsLc(const Task& task) {
  return task.app->options.app_class == AppClass::kLatencyCritical;
}

// The launch of `part` of `task`, arguments and all.
LaunchRequest MakeRequest(const Task& task, const Part& part);

// Launches a task of `query` (null: none that is open). A query that another thread ended while its
// launch was under way flushed the lane too early, so that the lane is flushed again.
absl::Status LaunchInQuery(Flow& flow, const LaunchRequest& request, const QuerySlot* query);

// A part that the device has accepted enters the tables: running lists, T_q, CapSMs, hang clock.
void EnterRunning(Flow& flow, Task& task, Part& part);

// The status of a device call that poisons the whole device.
bool IsDeviceLost(const absl::Status& status);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_LAUNCH_H_
