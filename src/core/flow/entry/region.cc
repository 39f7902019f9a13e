// Regions. See region.h.

#include "src/core/flow/entry/region.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/flow/entry/fast_path.h"
#include "src/core/flow/entry/submit_check.h"
#include "src/core/flow/verbs/accept.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/state/shared/route.h"

namespace gpushare::core {
namespace {

// Whether the queue is in order on a lane that holds a graph in segments. The end of a region is a
// launch, and the device takes none there. An empty queue gets another lane (Lanes::Pick).
bool IsBehindSegments(const Flow& flow, const Queue& queue) {
  if (queue.in_flight.load(std::memory_order_acquire) == 0) return false;
  const LaneIndex lane = queue.lane.load(std::memory_order_relaxed);
  return lane != kNoLane && flow.lanes.lane(lane).holds_segments.load(std::memory_order_relaxed);
}

// Whether a BE region of so long may begin beside what LC apps promise. *leave: on what, where it
// is longer than one of them tolerates.
absl::Status FitsRoom(Flow& flow, const Queue& queue, int64_t bound_ns, RegionLeave* leave) {
  const int64_t allowed = RegionRoomNs(flow);
  const auto now_ns = [&] { return flow.device->NowNs(); };
  const bool empty = queue.in_flight.load() == 0;
  if (empty && flow.gate.InFlight() == 0) {
    if (bound_ns <= allowed) return absl::OkStatus();
    if (flow.region_rooms.TakeSaved(queue.app->slot, bound_ns, now_ns)) {
      *leave = RegionLeave::kSaved;
      return absl::OkStatus();
    }
    if (flow.region_rooms.TakeCredit(queue.app->slot, bound_ns, now_ns)) {
      *leave = RegionLeave::kCredit;
      return absl::OkStatus();
    }
    // What is saved and credit grow with time, and only a plan reads them.
    flow.regions_refused.fetch_add(1, std::memory_order_relaxed);
  }
  if (empty) queue.app->region_wish.Note(now_ns(), bound_ns);
  return absl::UnavailableError(absl::StrCat("A best-effort region of ", bound_ns,
                                             " ns does not fit now: the bound is ", allowed,
                                             " ns and the queue must be empty. Try again later."));
}

// Whether the plan of partitions allows an LC region: it begins at once, so it can neither take its
// turn in a shared partition nor evict BE work from an idle one.
absl::Status FitsPartitions(const Flow& flow, const Queue& queue) {
  if (!flow.PlanInForce()) return absl::OkStatus();
  const App& app = *queue.app;
  const PlaceIndex own = app.region_place.load();
  if (own == kNoPlace) {
    return absl::UnavailableError(absl::StrCat(
        "A plan of partitions is in force, and LC app '", app.options.name,
        "' begins a region. Only an app with a partition of its own may, in a plan without "
        "slack_eviction_ns; submit opaque work instead."));
  }
  // The queue's work in flight may be from before the plan, and so may the published route.
  const bool in_order = queue.in_flight.load(std::memory_order_acquire) > 0;
  const LaneIndex lane = in_order ? queue.lane.load(std::memory_order_relaxed) : kNoLane;
  const bool there = lane == kNoLane
                         ? UnpackRoute(app.route.load(std::memory_order_seq_cst)).place == own
                         : flow.lanes.lane(lane).spec.place == own;
  if (there) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("LC app '", app.options.name,
                                             "' has work outside of its new partition. Try the "
                                             "region again later."));
}

// Whether a region of the queue may begin now. The caller has counted it in open_regions, and
// quiesce sets its flag before it reads that count: either the flag is seen here, or quiesce waits
// for the region.
absl::Status MayBegin(Flow& flow, const Queue& queue, int64_t bound_ns, RegionLeave* leave) {
  if (bound_ns < 1 || bound_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat("A region declares a bound of ", bound_ns,
                                                   " ns, and it must lie between 1 and ",
                                                   kMaxDurationNs, " ns."));
  }
  if (flow.quiesced.load()) {
    return absl::UnavailableError("The runtime is quiesced; begin the region again after resume.");
  }
  if (const int waiting = queue.unlaunched.load(); waiting > 0) {
    return absl::UnavailableError(absl::StrCat(
        "The queue has ", waiting, " tasks that are not launched yet. Try again later."));
  }
  if (IsBehindSegments(flow, queue)) {
    return absl::UnavailableError(
        "The queue's lane holds a graph in segments. Try again later, when the graph has left it.");
  }
  if (queue.app->options.app_class == AppClass::kLatencyCritical) {
    return FitsPartitions(flow, queue);
  }
  if (const int32_t quota = queue.app->reserved_capsms.load(); quota > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("BE app '", queue.app->options.name, "' has a quota of ", quota,
                     " CapSMs, and a region has the whole device; submit opaque work instead."));
  }
  if (const int32_t reserved = flow.lc_reserved_capsms.load(); reserved > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(reserved,
                     " CapSMs are reserved, and a region has the whole device; submit "
                     "opaque work instead."));
  }
  return FitsRoom(flow, queue, bound_ns, leave);
}

// What of it a query has.
absl::Status CheckQuery(const Flow& flow, const RegionSpec& region, AppClass app_class) {
  const bool states = region.arrival_ns != 0 || region.input_size != 0;
  if (states && app_class == AppClass::kBestEffort) {
    return absl::InvalidArgumentError(
        "A region of a best-effort app states an arrival or an input, and only queries have them.");
  }
  if (absl::Status status = CheckArrival("A region", region.arrival_ns, flow.device->NowNs());
      !status.ok()) {
    return status;
  }
  return CheckInput("A region", region.input_size);
}

int64_t BoundOf(const RegionSpec& region, const Queue& queue) {
  if (region.bound_ns != 0) return region.bound_ns;
  const int64_t learnt_ns = queue.region_ns.load(std::memory_order_relaxed);
  return learnt_ns > 0 ? learnt_ns : kFirstRegionNs;
}

absl::Status NoOpenRegion() { return absl::InvalidArgumentError("The ticket is no open region."); }

// Chooses the region's lane and place. An LC region evicts the BE work that overlaps it.
void PlaceRegion(Flow& flow, Task& task) {
  App& app = *task.app;
  Queue& queue = *task.queue;
  const bool latency_critical = app.options.app_class == AppClass::kLatencyCritical;
  // Enter before the route is read (lc_gate.h): a route read outside may be stale.
  if (latency_critical) {
    flow.gate.EnterLc();
    task.progress.entered_gate = true;
  }
  const LcRoute route = UnpackRoute(app.route.load(std::memory_order_seq_cst));
  Part& part = task.progress.parts.Add();
  part.form = Form::kOpaque;
  part.blocks_asked = 1;
  const bool in_order = queue.in_flight.load(std::memory_order_acquire) > 0;
  part.lane = in_order ? queue.lane.load(std::memory_order_relaxed)
              : latency_critical && route.place >= 0
                  ? flow.lanes.Pick(route.place, route.lane_class, app.slot)
                  : flow.lanes.Pick(kWholeDevice, LaneClass::kPlain, app.slot);
  part.place = part.lane == kNoLane ? kWholeDevice : flow.lanes.lane(part.lane).spec.place;
  if (part.lane != kNoLane) part.stream = flow.lanes.lane(part.lane).streams.load();
  queue.lane.store(part.lane, std::memory_order_relaxed);
  queue.in_flight.fetch_add(1, std::memory_order_acq_rel);
  task.progress.is_region = true;
  task.progress.evicts = latency_critical && route.evict_overlapping;
  task.region.store(RegionPhase::kOpen);
  if (task.progress.evicts) EvictOverlapping(flow, part.place, Reason::kEvictForLc);
}

}  // namespace

int64_t RegionRoomNs(const Flow& flow) {
  if (flow.gate.InFlight() > 0 || flow.quiesced.load()) return 0;
  return flow.region_rooms.Longest([&] { return flow.device->NowNs(); });
}

absl::StatusOr<TicketId> SubmitRegionBegin(Flow& flow, QueueId id, const RegionSpec& region,
                                           void** stream) {
  Queue* queue = flow.tables.FindQueue(id);
  if (queue == nullptr) return QueueReleased(id);
  App& app = *queue->app;
  InsideSubmit inside(app);
  QueueHold hold(*queue);
  if (!app.open.load() || !hold.IsStill(id)) return QueueReleased(id);
  // A submitter's launch may have found the loss before the flow handles it. Trying again later
  // would not help.
  if (flow.device_lost.load() || !flow.accepting.load()) return RefusalOf(flow);
  flow.open_regions.fetch_add(1);
  queue->regions_open.fetch_add(1);
  const auto give_up = [&] {
    queue->regions_open.fetch_sub(1);
    flow.open_regions.fetch_sub(1);
  };
  TaskSpec spec;
  spec.work.kind = TaskKind::kOpaque;
  spec.work.declared_ns = BoundOf(region, *queue);
  spec.arrival_ns = region.arrival_ns != 0 ? region.arrival_ns : region.called_ns;
  spec.next_within_ns = region.next_within_ns;
  spec.input_size = region.input_size;
  absl::Status status = CheckQuery(flow, region, app.options.app_class);
  if (status.ok()) status = CheckNext(spec, app.options.app_class);
  RegionLeave leave = RegionLeave::kRoom;
  if (status.ok()) status = MayBegin(flow, *queue, spec.work.declared_ns, &leave);
  if (!status.ok()) {
    give_up();
    return status;
  }
  absl::StatusOr<Task*> accepted = AcceptTask(flow, *queue, spec, nullptr, nullptr);
  if (!accepted.ok()) {
    if (leave == RegionLeave::kSaved) flow.region_rooms.GiveSavedBack();
    give_up();
    return accepted.status();
  }
  hold.Keep();
  Task& task = **accepted;
  task.progress.region_leave = leave;
  PlaceRegion(flow, task);
  const LaneIndex lane = task.progress.parts[0].lane;
  if (stream != nullptr) *stream = lane == kNoLane ? nullptr : flow.device->LaneStream(lane);
  const TicketId ticket = task.record.ticket;
  flow.ring.Push(PackRing(RingTag::kRegionBegun, ticket.value));
  return ticket;
}

absl::Status SubmitRegionEnd(Flow& flow, TicketId region) {
  Task* task = flow.tables.FindTicket(region);
  if (task == nullptr) return NoOpenRegion();
  // A shutdown ends open regions itself, and awaits the threads that end one. On a lost device a
  // region ends at once.
  InsideSubmit inside(*task->app);
  if (!flow.accepting.load() && !flow.device_lost.load()) return NoOpenRegion();
  RegionPhase open = RegionPhase::kOpen;
  if (!Tables::IsSlotOf(*task, region) ||
      !task->region.compare_exchange_strong(open, RegionPhase::kEnded)) {
    return NoOpenRegion();
  }
  // The end of the region is a launch on the same lane: it completes when the stream gets there.
  const FastPathResult result = LaunchPrepared(flow, *task);
  if (result == FastPathResult::kNotTaken) {
    task->region.store(RegionPhase::kOpen);
    return absl::ResourceExhaustedError(absl::StrCat("The device has ", kMaxInFlightLaunches,
                                                     " launches in flight. End the region again."));
  }
  const bool launched = result == FastPathResult::kLaunched;
  flow.ring.Push(PackRing(launched ? RingTag::kStarted : RingTag::kStartFailed, region.value));
  return absl::OkStatus();
}

}  // namespace gpushare::core
