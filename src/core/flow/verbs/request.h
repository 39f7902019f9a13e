// The verb "make a request": turns a task and one of its parts into a request to the device.
//
// Shared by the launch stage, the LC fast path, regions and fused launches. Threads: any; a request
// is built by the thread that owns the launch.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_REQUEST_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_REQUEST_H_

#include "absl/status/status.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// The request for `part` of `task`, arguments and all.
LaunchRequest MakeRequest(const Task& task, const Part& part);

// Block tasks of the task that are done or in slices on the device: its next slice begins there.
int64_t BlocksLaunched(const Task& task);

// The part of a request that is this task's. A fused launch has two.
void FillLaunchPart(const Task& task, const Part& part, LaunchPart& launch);

// Launches a task of `query` (null: none that is open). If another thread ended the query while its
// launch was under way, the lane was flushed too early; it is flushed again.
absl::Status LaunchInQuery(Flow& flow, const LaunchRequest& request, const QuerySlot* query);

// Whether the status of a device call means that the whole device is lost (seams/device.h).
bool IsDeviceLost(const absl::Status& status);

// Writes to the application's log that the enqueue function of a task failed; `failure` is the
// sentence's verb and reason, "threw std::bad_alloc".
void ReportEnqueueFailure(const Flow& flow, TicketId ticket, const std::string& failure);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_REQUEST_H_
