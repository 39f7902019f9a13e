// The submitter's side of an LC launch. See fast_path.h and lc_gate.h.

#include "src/core/flow/fast_path.h"

#include <bit>

#include "src/core/seams/ordinary_form.h"

namespace gpushare::core {

void EvictLane(Flow& flow, LaneIndex index, int32_t workers_to_keep, TicketId task, Reason reason) {
  Lane& lane = flow.lanes.lane(index);
  // seq_cst on both sides: a launcher that is not counted yet finds the gate closed (lc_gate.h). A
  // split has tens of lanes: an atomic on each of them at every LC launch is what this spares.
  if (lane.evictable.load(std::memory_order_seq_cst) == 0) return;
  uint64_t word = flow.gate.RaiseEpoch(index);
  lane.evicted_at_ns.store(flow.device->NowNs(), std::memory_order_relaxed);
  // Two threads that raise the same lane may write in the wrong order, and an older word would lose
  // the newer one's eviction. Whoever finds a newer epoch after its write, writes that one too.
  for (;;) {
    // LC work that closed the lane in the meantime wants all of it: a partial eviction gives way.
    if (!flow.gate.IsOpen(index)) workers_to_keep = 0;
    if (!flow.device->Evict(index, word, workers_to_keep).ok()) {
      flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
    }
    const uint64_t latest = flow.gate.Epoch(index);
    if (static_cast<int64_t>(latest - word) <= 0) break;
    word = latest;
    workers_to_keep = 0;
  }
  EventRecord event;
  event.type = static_cast<uint8_t>(EventType::kEvicted);
  event.time_ns = flow.device->NowNs();
  event.id = task.value;
  event.a = index;
  event.b = static_cast<int64_t>(word);
  event.c = workers_to_keep;
  event.place = static_cast<int16_t>(lane.spec.place);
  event.reason = static_cast<uint8_t>(reason);
  flow.Emit(event);
}

void EvictOverlapping(Flow& flow, PlaceIndex place, Reason reason) {
  for (uint64_t lanes = flow.lanes.EvictableLanes(place); lanes != 0; lanes &= lanes - 1) {
    EvictLane(flow, std::countr_zero(lanes), 0, TicketId{}, reason);
  }
}

FastPathResult LaunchPart(Flow& flow, Task& task) {
  Part& part = task.parts[0];
  Queue& queue = *task.queue;
  if (part.lane == kNoLane || flow.device_lost.load(std::memory_order_relaxed)) {
    return FastPathResult::kFailed;
  }
  part.launch = flow.launches.Take(&task);
  if (!part.launch) return FastPathResult::kNotTaken;
  part.launched_ns = flow.device->NowNs();
  task.part_count = 1;
  task.started_early = true;
  task.record.launch_ns = part.launched_ns;
  task.record.launch_reason = Reason::kFastPath;
  task.record.form = part.form;
  task.record.place = part.place;
  task.record.launches = 1;
  Lane& lane = flow.lanes.lane(part.lane);
  lane.in_flight.fetch_add(1, std::memory_order_relaxed);
  queue.lane.store(part.lane, std::memory_order_relaxed);
  if (!task.is_region) queue.in_flight.fetch_add(1, std::memory_order_acq_rel);
  // From the launch on the task is the flow's: it may complete before the next line runs.
  const LaunchRequest request = MakeRequest(task, part);
  const QuerySlot* const query = task.explicit_query;
  task.state.store(TaskState::kRunning, std::memory_order_release);
  const absl::Status status = LaunchInQuery(flow, request, query);
  if (status.ok()) {
    flow.counters.fast_path_launches.fetch_add(1, std::memory_order_relaxed);
    return FastPathResult::kLaunched;
  }
  if (IsDeviceLost(status)) flow.device_lost.store(true);
  flow.launches.Free(part.launch);
  lane.in_flight.fetch_sub(1, std::memory_order_relaxed);
  if (!task.is_region) queue.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  task.part_count = 0;
  task.record.error_code = static_cast<int32_t>(status.code());
  return FastPathResult::kFailed;
}

FastPathResult TryFastPath(Flow& flow, Task& task) {
  Queue& queue = *task.queue;
  App& app = *task.app;
  if (task.wait_ticket_count != 0 || app.options.drop_late) return FastPathResult::kNotTaken;
  if (queue.unlaunched.load(std::memory_order_acquire) != 0) return FastPathResult::kNotTaken;
  if (queue.in_flight.load(std::memory_order_acquire) >= kLcWindow) {
    return FastPathResult::kNotTaken;
  }
  // Enter before the switch and the route are read: quiesce and a narrower route wait for whoever
  // is inside (lc_gate.h).
  flow.gate.EnterLc();
  const LcRoute route = UnpackRoute(app.route.load(std::memory_order_seq_cst));
  if (!route.fast_path || route.place < 0 || !flow.fast_path.load(std::memory_order_seq_cst)) {
    flow.gate.LeaveLc();
    return FastPathResult::kNotTaken;
  }
  task.entered_gate = true;
  Part& part = task.parts[0];
  part = Part();
  part.form = OrdinaryForm(task.kind);
  part.blocks_asked = task.blocks;
  const bool in_order = queue.in_flight.load(std::memory_order_acquire) > 0;
  part.lane = in_order ? queue.lane.load(std::memory_order_relaxed)
                       : flow.lanes.Pick(route.place, route.lane_class, app.slot);
  const bool usable =
      part.lane != kNoLane && flow.lanes.lane(part.lane).usable.load(std::memory_order_acquire);
  // Behind a fused launch it would wait for both parts: the launch stage waits for its own alone.
  const bool behind_fused =
      usable && in_order && flow.lanes.lane(part.lane).carried.load(std::memory_order_relaxed) > 0;
  part.place = usable ? flow.lanes.lane(part.lane).spec.place : kNoPlace;
  const bool confined = part.place != kWholeDevice;
  if (!usable || behind_fused || (confined && task.kernel != nullptr && !task.kernel->confinable)) {
    task.entered_gate = false;
    flow.gate.LeaveLc();
    return FastPathResult::kNotTaken;
  }
  // Still on the lane of an older route: what is in flight there keeps the gate from narrowing.
  if (in_order && route.evict_overlapping) {
    flow.gate.WidenLanes(flow.lanes.EvictableLanes(part.place));
  }
  task.evicts = route.evict_overlapping;
  if (task.evicts) EvictOverlapping(flow, part.place, Reason::kEvictForLc);
  const FastPathResult result = LaunchPart(flow, task);
  if (result == FastPathResult::kNotTaken) {
    task.entered_gate = false;
    flow.gate.LeaveLc();
  }
  return result;
}

}  // namespace gpushare::core
