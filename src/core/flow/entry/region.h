// Part of stage 1, submit: regions, in which the caller enqueues its own work on a lane's stream.
//
//   SubmitRegionBegin -> the caller enqueues on the stream -> SubmitRegionEnd
//
// A region takes its lane at the begin; its end is a launch of the fast path on that lane, which
// completes when the stream gets there. Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_REGION_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_REGION_H_

#include "absl/status/statusor.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// How much BE work may be on the device, in front of the next LC query, without credit. 0: none,
// because LC work runs or the runtime is quiesced.
int64_t RegionRoomNs(const Flow& flow);

// UNAVAILABLE: it may not begin now; try again later.
absl::StatusOr<TicketId> SubmitRegionBegin(Flow& flow, QueueId queue, const RegionSpec& region,
                                           void** stream);
absl::Status SubmitRegionEnd(Flow& flow, TicketId region);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_REGION_H_
