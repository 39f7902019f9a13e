// Stage 1, submit: from any thread, in any language, into the flow.
//
//   check the specification (submit_check.h) -> accept the task, arguments copied (verbs/accept.h)
//   -> launch it at once (LC fast path, fast_path.h) or post its ticket in the submit ring
//
// Never blocks; allocates only for an error's message. Regions are in region.h. Collect is the part
// of the stage that runs in Tick: it takes posted words out of the ring.

#ifndef GPUSHARE_SRC_CORE_FLOW_SUBMIT_H_
#define GPUSHARE_SRC_CORE_FLOW_SUBMIT_H_

#include "absl/status/statusor.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Threads: any. `app_class` is the class of the entry that was called.
absl::StatusOr<TicketId> SubmitTask(Flow& flow, const TaskSpec& spec, AppClass app_class);

// Counts a refused submit for the queue's app, for a caller that refuses before SubmitTask does.
// Threads: any.
void CountRejected(Flow& flow, QueueId queue);

struct QueryBegin {
  TimeNs arrival_ns = 0;  // 0: now
  double input_size = 0;  // 0: not stated
};
absl::StatusOr<QueryId> SubmitQueryBegin(Flow& flow, QueueId queue, const QueryBegin& begin);
absl::Status SubmitQueryEnd(Flow& flow, QueryId query);

// The thread that runs Tick: moves posted words to flow.inbox.
void Collect(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_SUBMIT_H_
