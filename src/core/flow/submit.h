// Stage 1, submit: from any thread, in any language, into the flow.
//
// SubmitTask checks the request, fills a slot of its app (arguments copied), and either launches it
// at once (the LC fast path, fast_path.h) or posts its ticket in the submit ring. It never blocks
// and allocates only for an error's message. Collect is the flow's side: it takes what was posted.

#ifndef GPUSHARE_SRC_CORE_FLOW_SUBMIT_H_
#define GPUSHARE_SRC_CORE_FLOW_SUBMIT_H_

#include "absl/status/statusor.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Threads: any. `app_class` is the class of the entry that was called.
absl::StatusOr<TicketId> SubmitTask(Flow& flow, const TaskSpec& spec, AppClass app_class);

absl::StatusOr<QueryId> SubmitQueryBegin(Flow& flow, QueueId queue, TimeNs arrival_ns);
absl::Status SubmitQueryEnd(Flow& flow, QueryId query);

absl::StatusOr<TicketId> SubmitRegionBegin(Flow& flow, QueueId queue, int64_t bound_ns,
                                           void** stream);
absl::Status SubmitRegionEnd(Flow& flow, TicketId region);

// The thread that runs Tick: moves posted words to flow.inbox.
void Collect(Flow& flow);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_SUBMIT_H_
