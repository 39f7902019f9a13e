// The verb "make a request". See request.h.

#include "src/core/flow/verbs/request.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {

bool IsDeviceLost(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDataLoss(status);
}

void ReportEnqueueFailure(const Flow& flow, TicketId ticket, const std::string& failure) {
  const std::string sentence = TextOf([&] {
    return absl::StrCat("The enqueue callback of ticket ", ticket.value, " ", failure, ".");
  });
  if (!sentence.empty()) flow.Report(sentence);
}

int64_t BlocksLaunched(const Task& task) {
  int64_t blocks = task.progress.blocks_done;
  for (const Part& part : task.progress.parts) {
    if (part.form == Form::kSlice) blocks += part.blocks_asked;
  }
  return blocks;
}

void FillLaunchPart(const Task& task, const Part& part, LaunchPart& launch) {
  launch.launch = part.launch;
  launch.lane = part.lane;
  launch.work = task.work;
  if (task.work.kind == TaskKind::kMemcpy) {
    launch.work.copy.offset += task.progress.blocks_done;
    launch.work.copy.bytes = part.blocks_asked;
  }
  const bool claims = ClaimsBlockTasks(part.form);
  launch.block_count = claims ? task.work.block_tasks : part.blocks_asked;
  launch.counter = claims ? task.progress.counter : -1;
  launch.reset_counter = claims && task.progress.counter_fresh;
  launch.epoch = part.epoch;
}

LaunchRequest MakeRequest(const Task& task, const Part& part) {
  LaunchRequest request;
  request.form = part.form;
  FillLaunchPart(task, part, request.parts[0]);
  request.block_begin = part.form == Form::kSlice ? BlocksLaunched(task) : 0;
  request.workers = part.form == Form::kWorkers ? part.workers : 0;
  request.after_lane = part.after_lane;
  request.wait_events = task.wait_events.span();
  request.signal_event = task.signal_event;
  request.waits_for_empty_sms = task.progress.waits_for_empty_sms;
  if (part.form == Form::kSegments) {
    request.longer_segments = task.progress.eviction_learned && !IsLc(task);
    request.graph_ns = task.progress.predicted.trained ? task.progress.predicted.duration_ns : 0;
  }
  // Opaque launches are made later, with no lock held: their query may have ended by then. The end
  // of segments is known without a completion word.
  const bool has_word = part.form != Form::kOpaque && part.form != Form::kSegments;
  request.more_follows = has_word && task.explicit_query != nullptr &&
                         task.explicit_query->open.load(std::memory_order_acquire);
  return request;
}

absl::Status LaunchInQuery(Flow& flow, const LaunchRequest& request, const QuerySlot* query) {
  // No launch of the query follows on the lane that it leaves.
  if (request.after_lane != kNoLane) flow.device->FlushLane(request.after_lane);
  absl::Status status = CatchExhaustion([&] { return flow.device->Launch(request); });
  if (request.more_follows && !query->open.load(std::memory_order_acquire)) {
    flow.device->FlushLane(request.parts[0].lane);
  }
  return status;
}

}  // namespace gpushare::core
