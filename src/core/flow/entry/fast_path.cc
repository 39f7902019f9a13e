// The submitter's side of an LC launch. See fast_path.h and lc_gate.h.

#include "src/core/flow/entry/fast_path.h"

#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/guarded_enqueue.h"
#include "src/core/flow/verbs/launch_task.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/seams/native_code.h"
#include "src/core/seams/ordinary_form.h"
#include "src/core/state/shared/route.h"

namespace gpushare::core {

FastPathResult LaunchPrepared(Flow& flow, Task& task) {
  Part& part = task.progress.parts[0];
  Queue& queue = *task.queue;
  // A region whose lane was replaced has its work on the stream that was given up.
  const bool moved = task.progress.is_region && part.lane != kNoLane &&
                     flow.lanes.lane(part.lane).streams.load() != part.stream;
  if (part.lane == kNoLane || moved || flow.device_lost.load(std::memory_order_relaxed)) {
    task.progress.parts.Clear();
    return FastPathResult::kFailed;
  }
  part.launch = flow.launches.Take(&task);
  if (!part.launch) return FastPathResult::kNotTaken;
  part.launched_ns = flow.device->NowNs();
  task.progress.started_early = true;
  task.record.launch_ns = part.launched_ns;
  task.record.launch_reason = Reason::kFastPath;
  task.record.form = part.form;
  task.record.place = part.place;
  task.record.launches = 1;
  Lane& lane = flow.lanes.lane(part.lane);
  lane.in_flight.fetch_add(1, std::memory_order_relaxed);
  // A region has both since its begin.
  const bool is_region = task.progress.is_region;
  const LaneIndex lane_before = queue.lane.load(std::memory_order_relaxed);
  if (!is_region) queue.lane.store(part.lane, std::memory_order_relaxed);
  if (!is_region) queue.in_flight.fetch_add(1, std::memory_order_acq_rel);
  // The launch hands the task to the flow: it may complete before the next line runs.
  LaunchRequest request = MakeRequest(task, part);
  const QuerySlot* const query = task.explicit_query;
  const TicketId ticket = task.record.ticket;
  std::string failure;
  const auto on_failure = [&](const std::string& what) {
    task.progress.enqueue_failed = true;
    failure = what;
  };
  const GuardedEnqueue guard(request, on_failure);
  task.state.store(TaskState::kRunning, std::memory_order_release);
  const absl::Status status = LaunchInQuery(flow, request, query);
  if (!failure.empty()) ReportEnqueueFailure(flow, ticket, failure);
  if (status.ok()) {
    flow.counters.fast_path_launches.fetch_add(1, std::memory_order_relaxed);
    return FastPathResult::kLaunched;
  }
  if (IsDeviceLost(status)) {
    flow.loss_code.store(NativeCodeOf(status));
    flow.device_lost.store(true);
  }
  flow.launches.Free(part.launch);
  lane.in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (!is_region) queue.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  if (!is_region) queue.lane.store(lane_before, std::memory_order_relaxed);
  task.progress.parts.Clear();
  task.record.error_code = NativeCodeOf(status);
  return FastPathResult::kFailed;
}

namespace {

// Whether the flow has nothing of the queue to launch first, and room for one more launch.
bool IsNext(const Queue& queue) {
  // seq_cst: with the submitter that counted itself before (entry/pieces.cc).
  return queue.unlaunched.load(std::memory_order_seq_cst) == 0 &&
         queue.deferred.load(std::memory_order_acquire) == 0 &&
         queue.in_flight.load(std::memory_order_acquire) < kLcWindow;
}

// Fills the lane and the place of the task's launch: those of the route, or where the queue has
// work in flight. False: the flow launches it.
bool PlacePart(const Flow& flow, const Task& task, const LcRoute& route, Part& part) {
  const Queue& queue = *task.queue;
  const auto is_usable = [&](LaneIndex lane) {
    return lane != kNoLane && flow.lanes.lane(lane).usable.load(std::memory_order_acquire);
  };
  const bool in_order = queue.in_flight.load(std::memory_order_acquire) > 0;
  const LaneIndex behind = in_order ? queue.lane.load(std::memory_order_relaxed) : kNoLane;
  if (in_order && !is_usable(behind)) return false;
  // Behind this lane it would wait for both parts of a fused launch; the launch stage waits for
  // one.
  if (in_order &&
      flow.lanes.lane(behind).fused_partners_pending.load(std::memory_order_relaxed) > 0) {
    return false;
  }
  const bool goes_on = in_order && MayGoOn(flow, queue, behind, route.place);
  part.after_lane = goes_on ? behind : kNoLane;
  part.lane = in_order && !goes_on ? behind
                                   : flow.lanes.Pick(route.place, route.lane_class, task.app->slot);
  if (!is_usable(part.lane)) return false;
  const Lane& lane = flow.lanes.lane(part.lane);
  part.place = lane.spec.place;
  // Pick avoids a lane with segments; a queue in order stays on its own.
  if (lane.holds_segments.load(std::memory_order_relaxed)) return false;
  return part.place == kWholeDevice || task.work.kernel == nullptr || task.work.kernel->confinable;
}

}  // namespace

FastPathResult TryFastPath(Flow& flow, Task& task) {
  App& app = *task.app;
  // Whether the task must yield is a plan's to say, and whether a graph is in segments elsewhere.
  const bool yields = app.options.Yields() &&
                      (task.IsSegmented() || flow.lets_lc_yield.load(std::memory_order_relaxed));
  if (yields || task.behind_pieces || !task.wait_tickets.empty() || app.options.drop_late ||
      !IsNext(*task.queue)) {
    return FastPathResult::kNotTaken;
  }
  // Enter before reading the switch and the route: quiesce and a narrower route wait for callers
  // inside the gate (lc_gate.h).
  flow.gate.EnterLc();
  const LcRoute route = UnpackRoute(app.route.load(std::memory_order_seq_cst));
  if (!route.fast_path || route.place < 0 || !flow.fast_path.load(std::memory_order_seq_cst)) {
    flow.gate.LeaveLc();
    return FastPathResult::kNotTaken;
  }
  task.progress.entered_gate = true;
  const auto give_up = [&] {
    task.progress.parts.Clear();
    task.progress.entered_gate = false;
    flow.gate.LeaveLc();
    return FastPathResult::kNotTaken;
  };
  Part& part = task.progress.parts.Add();
  part.form = OrdinaryForm(task.work.kind);
  part.blocks_asked = task.work.block_tasks;
  if (!PlacePart(flow, task, route, part)) return give_up();
  task.progress.evicts = route.evict_overlapping;
  if (task.progress.evicts) {
    // The queue may still use the lane of an older, larger route. Its work in flight keeps the gate
    // from narrowing.
    if (part.place != route.place) flow.gate.WidenLanes(flow.lanes.EvictableLanes(part.place));
    EvictForRoute(flow, task, route, part.place);
  }
  const FastPathResult result = LaunchPrepared(flow, task);
  return result == FastPathResult::kNotTaken ? give_up() : result;
}

}  // namespace gpushare::core
