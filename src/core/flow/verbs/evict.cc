// The verb "evict". See evict.h and lc_gate.h.

#include "src/core/flow/verbs/evict.h"

#include <algorithm>
#include <bit>

#include "src/core/base/exhaustion.h"
#include "src/core/log/events.h"

namespace gpushare::core {

namespace {

// Whether a launch that evicted may wait until its SMs are empty. The policy knows the BE work that
// it launched there and judged that all of it leaves.
bool MayWaitForEmptySms(const Flow& flow, const Task& task, Eviction eviction) {
  if (eviction != Eviction::kWritten) return false;
  // The next launch of another queue could take the SMs that this one waits for.
  if (task.app->queues.load(std::memory_order_relaxed) != 1) return false;
  // Evictions reach neither other LC work nor open regions nor hung launches. A hung launch may
  // hold its SMs for ever: once there was one, no launch waits any more.
  return flow.gate.InFlight() == 1 && flow.open_regions.load(std::memory_order_seq_cst) == 0 &&
         flow.counters.hung.load(std::memory_order_relaxed) == 0;
}

}  // namespace

Eviction EvictLane(Flow& flow, LaneIndex index, int32_t workers_to_keep, TicketId task,
                   Reason reason, int64_t own) {
  Lane& lane = flow.lanes.lane(index);
  // seq_cst on both sides: a launcher that is not counted yet finds the gate closed (lc_gate.h).
  // The early return spares an atomic on each of the tens of lanes of a split at every LC launch.
  if (lane.evictable.load(std::memory_order_seq_cst) == 0) return Eviction::kNothing;
  uint64_t word = flow.gate.RaiseEpoch(index);
  lane.evicted_at_ns.store(flow.device->NowNs(), std::memory_order_relaxed);
  // Two threads that raise the same lane may write in the wrong order, and an older word would undo
  // the newer eviction. A thread that finds a newer epoch after its write writes that one too.
  Eviction eviction = Eviction::kWritten;
  for (;;) {
    // LC work that closed the lane in the meantime needs all of it: evict in full.
    if (!flow.gate.IsOpen(index, own)) workers_to_keep = 0;
    const absl::Status status =
        CatchExhaustion([&] { return flow.device->Evict(index, word, workers_to_keep); });
    eviction = status.ok() ? Eviction::kWritten : Eviction::kFailed;
    if (!status.ok()) {
      flow.counters.evictions_blocked.fetch_add(1, std::memory_order_relaxed);
    }
    const uint64_t latest = flow.gate.Epoch(index);
    if (static_cast<int64_t>(latest - word) <= 0) break;
    word = latest;
    workers_to_keep = 0;
  }
  if (!flow.HasEvents()) return eviction;
  flow.EmitAt(flow.device->NowNs(), Evicted{.ticket = task,
                                            .lane = index,
                                            .epoch = word,
                                            .workers_to_keep = workers_to_keep,
                                            .place = lane.spec.place,
                                            .reason = reason});
  return eviction;
}

Eviction EvictOverlapping(Flow& flow, PlaceIndex place, Reason reason) {
  Eviction worst = Eviction::kNothing;
  for (uint64_t lanes = flow.lanes.EvictableLanes(place); lanes != 0; lanes &= lanes - 1) {
    worst = std::max(worst, EvictLane(flow, std::countr_zero(lanes), 0, TicketId{}, reason));
  }
  return worst;
}

void EvictForRoute(Flow& flow, Task& task, const LcRoute& route, PlaceIndex place) {
  const Eviction eviction = EvictOverlapping(flow, place, Reason::kEvictForLc);
  // The policy knows what runs on the route's SMs. A wider place may hold work that stays.
  task.progress.waits_for_empty_sms =
      route.waits_for_empty_sms && place == route.place && MayWaitForEmptySms(flow, task, eviction);
}

}  // namespace gpushare::core
