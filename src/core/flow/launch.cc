// The launch stage: from a plan to device calls. See launch.h.

#include "src/core/flow/launch.h"

#include <algorithm>

#include "src/core/flow/fused/fused_launch.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/late_queries.h"
#include "src/core/flow/verbs/launch_task.h"
#include "src/core/flow/verbs/plan_entry.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/log/events.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/first_late.h"
#include "src/core/queueing/headroom.h"
#include "src/core/seams/launch_claims.h"
#include "src/core/seams/ordinary_form.h"
#include "src/core/state/shared/route.h"
#include "src/core/state/state_change.h"

namespace gpushare::core {
namespace {

// Widen the gate, publish the routes, narrow the gate: an LC caller never acts on a route whose
// lanes the gate does not close.
void PublishRoutes(Flow& flow) {
  const Plan& plan = flow.buffers.plan;
  uint64_t lanes = 0;
  for (int i = 0; i < flow.lc_apps.size(); ++i) {
    const LcRoute& route = plan.routes[static_cast<size_t>(i)];
    if (route.evict_overlapping && flow.lanes.HasPlace(route.place)) {
      lanes |= flow.lanes.EvictableLanes(route.place);
    }
  }
  flow.gate.WidenLanes(lanes);
  for (int i = 0; i < flow.lc_apps.size(); ++i) {
    const LcRoute& route = plan.routes[static_cast<size_t>(i)];
    if (!flow.lanes.HasPlace(route.place)) continue;
    std::atomic<uint32_t>& word = flow.lc_apps[i]->route;
    const uint32_t packed = PackRoute(route);
    if (word.load(std::memory_order_relaxed) != packed) {
      word.store(packed, std::memory_order_seq_cst);
    }
  }
  if (flow.gate.ClosedLanes() != lanes) flow.gate.NarrowLanes(lanes);
}

// How long a query may wait for segments that began under the limit.
int64_t LongestWait(const Flow& flow, int64_t longest_segment_ns) {
  if (longest_segment_ns < kNever) return kSegmentsOutstanding * longest_segment_ns;
  int64_t longest_ns = 0;
  for (const Task* const task : flow.running_be) {
    if (task->IsSegmented())
      longest_ns = std::max(longest_ns, task->progress.predicted.duration_ns);
  }
  return longest_ns;
}

// Before the launches, which begin under the new limit.
void LimitSegments(Flow& flow) {
  const int64_t longest_ns = flow.buffers.plan.longest_segment_ns;
  if (longest_ns == flow.longest_segment_ns) return;
  if (longest_ns < flow.longest_segment_ns) {
    // Those of a limit before the last one may still be there.
    flow.long_segments_until_ns = std::max(
        flow.long_segments_until_ns, flow.now_ns + LongestWait(flow, flow.longest_segment_ns));
  }
  flow.longest_segment_ns = longest_ns;
  flow.device->LimitSegments(longest_ns);
}

// Launches the head, and LC tasks behind it, in a row.
void LaunchHeads(Flow& flow, Queue& queue, const PlannedLaunch& planned) {
  // BE tasks of a queue run one at a time. An LC task behind the head must wait for no ticket.
  const bool lc = IsLc(*queue.head);
  const int count = lc ? planned.count : 1;
  for (int i = 0; i < count && queue.head != nullptr; ++i) {
    if (i > 0 && !queue.head->wait_tickets.empty()) return;
    if (lc && queue.in_flight.load(std::memory_order_acquire) >= kLcWindow) return;
    if (queue.deferred.load(std::memory_order_acquire) > 0) return;
    if (flow.drops_late && lc && WaitsForItsTurn(flow, *queue.head)) return;
    PlannedLaunch each = planned;
    if (i > 0) {
      each.form = OrdinaryForm(queue.head->work.kind);
      if (planned.form == Form::kFused) {  // planned for the pair
        each.workers = 0;
        each.blocks_max = 0;
      }
    }
    const bool launched = each.form == Form::kFused ? LaunchFusedOrAlone(flow, *queue.head, each)
                                                    : LaunchTask(flow, *queue.head, each);
    if (!launched) return;
  }
}

// Whether the head is a piece of a query whose first piece is launched. It waits for no ticket.
bool GoesOn(const Queue& queue) {
  return queue.head != nullptr && queue.head->piece.graph != nullptr && !queue.head->piece.first &&
         !queue.head->cancel_requested.load(std::memory_order_relaxed) &&
         queue.in_flight.load(std::memory_order_acquire) < kLcWindow;
}

// While the runtime is quiesced no policy plans a launch. A query in pieces that has begun is one
// submitted graph, and quiesce waits for all of it.
void FinishBegunQueries(Flow& flow) {
  for (int i = 0; i < flow.backlog.size();) {
    Queue& queue = *flow.backlog[i];
    while (GoesOn(queue)) {
      PlannedLaunch rest;
      rest.task = queue.head->record.ticket;
      rest.form = OrdinaryForm(queue.head->work.kind);
      rest.lane_class = LaneClass::kLc;
      rest.reason = Reason::kLcFirst;
      if (!LaunchTask(flow, *queue.head, rest)) break;
    }
    // A queue without a head has left the list, and another one is in its place.
    if (i < flow.backlog.size() && flow.backlog[i] == &queue) ++i;
  }
}

// A task that is complete keeps its record: its callers read it without a lock.
void HoldPlanned(Flow& flow, const PlannedHold& planned) {
  Task* task = flow.tables.FindTask(planned.task);
  if (task == nullptr) return CountDropped(flow);
  const TaskState state = task->state.load(std::memory_order_acquire);
  if (state != TaskState::kWaiting && state != TaskState::kReady) return CountDropped(flow);
  Hold(flow, *task, planned);
}

void LaunchPlanned(Flow& flow, const PlannedLaunch& planned);

// A launch on a place that is not made yet: LC work goes to the whole device, BE work waits.
void LaunchWithoutPlace(Flow& flow, Task& task, PlannedLaunch planned) {
  planned.place = kWholeDevice;
  if (IsLc(task)) return LaunchPlanned(flow, planned);
  if (task.state.load() == TaskState::kReady) {
    HoldPlanned(flow, {planned.task, Reason::kHoldLane, 0, 0});
  }
}

void LaunchPlanned(Flow& flow, const PlannedLaunch& planned) {
  if (flow.device_lost.load()) return;
  Task* task = flow.tables.FindTask(planned.task);
  if (task == nullptr || !flow.lanes.HasPlace(planned.place)) return CountDropped(flow);
  if (task->cancel_requested.load(std::memory_order_relaxed)) return;
  if (!flow.lanes.named().IsMade(planned.place)) return LaunchWithoutPlace(flow, *task, planned);
  const TaskState state = task->state.load(std::memory_order_relaxed);
  if (state == TaskState::kRunning || state == TaskState::kEvicting) {
    if (!MayHaveMoreParts(*task, planned)) return CountDropped(flow);
    // A policy does not see how much the slices on the device leave.
    if (planned.form == Form::kSlice && BlocksLaunched(*task) >= task->work.block_tasks) return;
    LaunchTask(flow, *task, planned);
    return;
  }
  if (state != TaskState::kReady || task->queue->head != task) return CountDropped(flow);
  LaunchHeads(flow, *task->queue, planned);
}

// After a partial eviction the ledger charges the workers that stay. The launch is not leaving:
// only a later word evicts the rest.
void KeepWorkers(Flow& flow, const Task& task, Part& part, int32_t workers_to_keep) {
  if (workers_to_keep <= 0 || workers_to_keep >= part.workers || !HasWorkers(part.form)) return;
  flow.ledger.Release(static_cast<int>(task.app->slot), part.workers - workers_to_keep,
                      part.workers_per_sm);
  part.workers = workers_to_keep;
  flow.co_runs.Spoil(part.launch);
  part.leave_epoch = flow.gate.Epoch(part.lane) + 1;
}

// Whether the task is on the device and in the flow's tables. Until it is there, its submitter may
// still write what a launch has.
bool IsRunning(const Task& task) {
  const TaskState state = task.state.load(std::memory_order_acquire);
  return (state == TaskState::kRunning || state == TaskState::kEvicting) && task.progress.adopted;
}

// Whether it limits the partner of a fused launch of this plan, from its begin on (flow/fused).
bool LimitsPartner(const Plan& plan, const PlannedEviction& planned) {
  return planned.workers_to_keep > 0 &&
         std::any_of(plan.launches.begin(), plan.launches.end(), [&](const PlannedLaunch& launch) {
           return launch.form == Form::kFused &&
                  (launch.fused_with == planned.task || launch.task == planned.task);
         });
}

void EvictPlanned(Flow& flow, const PlannedEviction& planned) {
  if (LimitsPartner(flow.buffers.plan, planned)) return;
  Task* task = flow.tables.FindTask(planned.task);
  if (task == nullptr || !IsRunning(*task) || task->progress.parts.empty()) {
    return CountDropped(flow);
  }
  bool all_leave = true;
  for (Part& part : task->progress.parts) {
    if (part.epoch != 0 && part.place == planned.place) {
      EvictLane(flow, part.lane, planned.workers_to_keep, task->record.ticket, planned.reason);
      KeepWorkers(flow, *task, part, planned.workers_to_keep);
    }
    all_leave = all_leave && IsLeaving(flow.gate, part);
  }
  if (all_leave && task->state.load() == TaskState::kRunning) SetState(*task, TaskState::kEvicting);
}

// Most plans hold the heads that the last one held, for the same reasons. The policies name heads
// in their order, or nearly, so each is looked for a few places behind the one before.
void HoldAll(Flow& flow) {
  constexpr int kLaunchedBetween = 8;
  const auto& heads = flow.buffers.be_heads;
  int next = 0;
  for (const PlannedHold& hold : flow.buffers.plan.holds) {
    const int end = std::min(heads.size(), next + kLaunchedBetween);
    int at = next;
    while (at < end && heads[at]->view.task != hold.task) ++at;
    if (at < end) {
      next = at + 1;
      const Reason held = heads[at]->view_is_current ? heads[at]->held : Reason::kNone;
      if (held != Reason::kNone && held == hold.reason) continue;
    }
    HoldPlanned(flow, hold);
  }
}

// The longest BE region that the app's tail account has credit for, as of a task on credit.
int64_t RegionOnCredit(const LcAppView& app) {
  const bool has_load = app.load * kLoadSteps >= 0.5;
  if (!(app.tail_need_per_ns > 0) || app.tail_credit < (has_load ? 1 : 0)) return 0;
  if (app.tail_credit >= kTailCreditMax) return kMaxDurationNs;
  const double longest_ns = app.tail_credit / app.tail_need_per_ns;
  return longest_ns < static_cast<double>(kMaxDurationNs) ? static_cast<int64_t>(longest_ns)
                                                          : kMaxDurationNs;
}

// One launch in a silence between the busy periods of an app that works in steps: a share of the
// queries behind silences may be late.
int64_t InSilence(const LcAppView& app, TimeNs now_ns) {
  if (app.first_late_max <= 0 || app.expected_by_ns > now_ns) return 0;
  return LongestOfFirst(app.first_late_max, app.blocking_budget_ns, app.late_delay_ns);
}

// The BE regions that may begin now: nothing evicts them. None while an LC app has an active query;
// between the steps of an app no more than its next step tolerates; one at a time on credit. None
// beside a plan of partitions: a region is on all SMs.
RegionRoom RoomOfRegions(const Snapshot& snapshot, bool credit_is_taken) {
  if (snapshot.partitions != nullptr) return {};
  RegionRoom room = {.longest_ns = kMaxDurationNs,
                     .saved_ns = kMaxDurationNs,
                     .on_credit_ns = kMaxDurationNs,
                     .gap_ns = kMaxDurationNs};
  for (const LcAppView& app : snapshot.lc_apps) {
    if (app.active_queries > 0) return {};
    const int64_t longest_ns = std::max(app.LongestUncuttable(), app.lull_delay_ns);
    room.longest_ns = std::min(room.longest_ns, longest_ns);
    room.saved_ns =
        std::min(room.saved_ns,
                 std::max({longest_ns, app.saved_vacation_ns, InSilence(app, snapshot.now_ns)}));
    room.on_credit_ns = std::min(room.on_credit_ns, std::max(longest_ns, RegionOnCredit(app)));
    if (app.expected_by_ns <= snapshot.now_ns || app.blocking_budget_ns == kNever) continue;
    const double budget_ns = kBoundShareOfSplit * static_cast<double>(app.blocking_budget_ns);
    room.gap_ns = std::min(room.gap_ns, static_cast<int64_t>(budget_ns));
    room.gap_until_ns = std::max(room.gap_until_ns, app.expected_by_ns);
  }
  if (credit_is_taken) room.on_credit_ns = room.longest_ns;
  return room;
}

// Who may take what is saved, or the credit of the room: of the BE apps that lately asked for a
// region which needs it, and has enough of it, the one with the least start tag. Without any,
// whoever asks first.
uint64_t CreditApps(const Flow& flow, const RegionRoom& room) {
  const int64_t most_ns = std::max(room.saved_ns, room.on_credit_ns);
  const App* next = nullptr;
  for (const App* const app : flow.be_apps) {
    const int64_t bound_ns = app->region_wish.bound_ns.load(std::memory_order_relaxed);
    if (bound_ns <= room.longest_ns || bound_ns > most_ns) continue;
    if (!app->region_wish.IsOpen(flow.now_ns)) continue;
    if (next == nullptr || StartTag(*app, kSmTime) < StartTag(*next, kSmTime)) next = app;
  }
  return next == nullptr ? ~uint64_t{0} : uint64_t{1} << next->slot;
}

void PublishRoom(Flow& flow) {
  RegionRoom room = RoomOfRegions(flow.buffers.snapshot, flow.regions_on_credit > 0);
  room.credit_apps = CreditApps(flow, room);
  flow.region_rooms.Publish(room);
}

// Emits depth, CapSMs and least headroom of each app whose depth changed: counters of a trace.
void EmitDepths(Flow& flow) {
  if (!flow.HasEvents()) return;
  const int64_t headroom = LeastHeadroom(flow.buffers.snapshot.queries);
  const auto emit = [&](App& app) {
    const int64_t depth = app.TasksOpen();
    if (depth == app.depth_logged) return;
    app.depth_logged = depth;
    const double capsms = CapSmsOf(flow.ledger.UsedBy(static_cast<int>(app.slot)));
    flow.Emit(QueueDepth{.app = AppId{app.id.load(std::memory_order_relaxed)},
                         .app_class = app.options.app_class,
                         .depth = depth,
                         .capsms_thousandths = static_cast<int64_t>(capsms * 1000),
                         .least_headroom_ns = headroom});
  };
  for (App* app : flow.lc_apps) emit(*app);
  for (App* app : flow.be_apps) emit(*app);
}

// A choice is logged when it changes, and again after a while for a trace that began meanwhile.
void EmitChoice(Flow& flow) {
  const PlannedChoice& choice = flow.buffers.plan.choice;
  if (!flow.HasEvents() || choice.kind == ChoiceKind::kNone) return;
  const bool fresh = flow.now_ns - flow.choice_logged_ns < kChoiceLogNs;
  if (fresh && choice.SameAs(flow.choice_logged)) return;
  flow.choice_logged = choice;
  flow.choice_logged_ns = flow.now_ns;
  for (size_t i = 0; i < choice.tasks.size(); ++i) {
    if (i > 0 && !choice.tasks[i]) break;
    flow.Emit(Choice{.ticket = choice.tasks[i],
                     .kind = choice.kind,
                     .chosen = choice.chosen,
                     .runner_up = choice.runner_up,
                     .value = choice.value,
                     .runner_up_value = choice.runner_up_value});
    if (choice.shift.shift_ns < 0 && choice.runner_up_shift.shift_ns < 0) continue;
    flow.Emit(ChoiceShift{.ticket = choice.tasks[i],
                          .shift_ns = choice.shift.shift_ns,
                          .runner_up_shift_ns = choice.runner_up_shift.shift_ns,
                          .limit_ns = choice.shift.limit_ns,
                          .runner_up_limit_ns = choice.runner_up_shift.limit_ns});
  }
}

// A shutdown whose plan launches nothing, on an idle device, would wait for ever: the next plan is
// the flow's own (AskPolicy).
void NoteStalled(Flow& flow, bool launched) {
  const bool stalled = !flow.accepting.load() && !flow.buffers.plan.launches.empty() && !launched &&
                       flow.running_be.empty() && flow.running_lc.empty() &&
                       flow.gate.InFlight() == 0;
  if (stalled && !flow.plan_stalled) flow.dirty = true;  // once, or the flow would plan for ever
  flow.plan_stalled = stalled;
}

}  // namespace

void Launch(Flow& flow) {
  if (!flow.planned || flow.device_lost.load()) return;
  const Plan& plan = flow.buffers.plan;
  LimitSegments(flow);
  PublishRoutes(flow);
  EmitDepths(flow);
  EmitChoice(flow);
  PublishRoom(flow);
  if (flow.cut_off) return;
  if (flow.quiesced.load()) return FinishBegunQueries(flow);
  for (const PlannedEviction& eviction : plan.evictions) EvictPlanned(flow, eviction);
  const int64_t launches = flow.counters.launches.load(std::memory_order_relaxed);
  for (const PlannedLaunch& launch : plan.launches) LaunchPlanned(flow, launch);
  HoldAll(flow);
  NoteStalled(flow, flow.counters.launches.load(std::memory_order_relaxed) > launches);
}

}  // namespace gpushare::core
