// The heads of the snapshot. See head_views.h.

#include "src/core/flow/planning/head_views.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/planning/yields.h"
#include "src/core/flow/verbs/launch_task.h"
#include "src/core/flow/verbs/predict_task.h"
#include "src/core/promise/tuning.h"
#include "src/core/state/backlog.h"

namespace gpushare::core {
namespace {

// A graph whose segments are known moves a p99 by less than its longest wait.
int64_t EvictionShift(Task& task, double tail_rate) {
  Progress& progress = task.progress;
  const SegmentBlocking* const blocking =
      task.IsSegmented() ? task.work.kernel->known_blocking() : nullptr;
  if (blocking == nullptr) return progress.blocking_ns;
  if (progress.blocking_ns == kNever) return kNever;
  if (progress.shift_rate != tail_rate) {
    progress.shift_rate = tail_rate;
    progress.shift_ns =
        blocking->ShiftNs(tail_rate, static_cast<double>(progress.blocking_mean_ns));
  }
  return std::min(progress.blocking_ns, progress.shift_ns);
}

// Whether a BE task has a successor in its queue that waits for nothing but its turn.
bool IsFollowed(const Task& task) {
  const Task* next =
      task.queue->head == &task ? task.progress.next : task.queue->head;  // it is not on the device
  if (next == nullptr) return false;
  return next->state.load(std::memory_order_relaxed) == TaskState::kReady ||
         next->wait_tickets.empty();
}

void ViewTask(const Flow& flow, Task& task, double tail_rate, HeadView& view) {
  view.task = task.record.ticket;
  view.app_class = task.app->options.app_class;
  view.app = task.app->plan_index;
  view.queue = task.record.queue;
  view.query = task.record.query;
  view.kind = task.work.kind;
  view.kernel = task.work.kernel;
  view.kernel_index = IsLc(task) ? -1 : flow.pair_kernels.RowOf(task.work.kernel);
  view.overlap_index = flow.overlap_kernels.RowOf(task.work.kernel);
  view.sequence = task.progress.sequence;
  view.ready_ns = task.progress.ready_ns;
  view.ready_count = 1;
  view.blocks_left = task.work.block_tasks - task.progress.blocks_done;
  view.resumed = task.record.launches > 0;
  view.awaited_by_lc = task.queue->awaited_by_lc;
  view.evictable = task.progress.eviction_p99_ns != kNever;
  // Opaque work and copies run on the stream of any place.
  view.confinable = task.work.kernel == nullptr ||
                    (task.work.kernel->confinable && !YieldsInSegments(flow, task));
  view.direction =
      task.work.kind == TaskKind::kMemcpy ? task.work.copy.direction : CopyDirection::kNone;
  view.pinned = task.work.copy.pinned;
  view.remaining = RemainingOf(task);
  view.whole_ns = task.progress.predicted.duration_ns;
  view.block_ns = task.work.block_tasks > 0
                      ? static_cast<double>(task.progress.predicted.duration_ns) /
                            static_cast<double>(task.work.block_tasks)
                      : 0;
  view.eviction_ns = EvictionShift(task, tail_rate);
  view.eviction_p99_ns = task.progress.eviction_p99_ns;
  view.eviction_known = task.progress.eviction_known;
}

// A head that waits for an empty place, which others may refill, stops waiting after a while.
bool WaitsToRunAlone(const Flow& flow, const Task& task) {
  return task.record.launches == 0 && flow.now_ns - task.progress.ready_ns <= kBePassedNsMax &&
         AsksForSoloRun(flow, task);
}

// How many LC tasks, from the head on, may be launched in a row: they wait for no ticket, and the
// queue's window has room.
int32_t ReadyCount(Queue& queue) {
  const int32_t room = kLcWindow - queue.in_flight.load(std::memory_order_acquire);
  return ReadyRun(queue, std::max(room, 1));
}

// Whether the planner may see the queue's head now.
bool Offered(const Queue& queue, bool latency_critical) {
  const bool ready = queue.view_is_current ||
                     queue.head->state.load(std::memory_order_relaxed) == TaskState::kReady;
  if (!ready) return false;
  if (queue.deferred.load(std::memory_order_acquire) > 0) return false;
  const int32_t in_flight = queue.in_flight.load(std::memory_order_acquire);
  // BE tasks run one at a time: the rest of an evicted task must run before its successor.
  if (!latency_critical) return in_flight == 0;
  return in_flight < kLcWindow;
}

bool IsKept(const Task& head) { return !IsLc(head) && head.work.kind != TaskKind::kGraph; }

// A wait to run alone ends with its time, or with the last run that is asked for. It does not begin
// again while the head stays.
void EndWaitToRunAlone(const Flow& flow, const Task& head, HeadView& view) {
  if (view.runs_alone) view.runs_alone = WaitsToRunAlone(flow, head);
}

using HeadOrder = BoundedList<OrderedHead, kMaxQueues>;

bool GoesBefore(const OrderedHead& a, const OrderedHead& b) { return a.sequence < b.sequence; }

// The LC heads stand in order of submission. Those of a higher priority go first.
void OrderByPriority(const Flow& flow, absl::Span<const HeadView*> heads) {
  const auto priority = [&flow](const HeadView* head) {
    return flow.lc_apps[head->app]->options.priority;
  };
  for (size_t i = 1; i < heads.size(); ++i) {
    const HeadView* const moved = heads[i];
    size_t at = i;
    for (; at > 0 && priority(heads[at - 1]) < priority(moved); --at) heads[at] = heads[at - 1];
    heads[at] = moved;
  }
}

// Merges `moved`, sorted, into the first `stay` entries of the order. Its other entries go.
void MergeInto(HeadOrder& order, int stay, const HeadOrder& moved) {
  int left = moved.size();
  while (order.size() > stay + left) order.PopBack();
  for (int at = stay + left; left > 0;) {
    const bool moved_is_last = stay == 0 || GoesBefore(order[stay - 1], moved[left - 1]);
    order[--at] = moved_is_last ? moved[--left] : order[--stay];
  }
}

// Brings Flow::plan_order up to date: most heads stand where they stood in the last plan. Returns
// whether the graph of one is taken.
bool OrderHeads(Flow& flow) {
  HeadOrder moved;
  int stay = 0;
  bool any_taken = false;
  for (const OrderedHead& entry : flow.plan_order) {
    Queue& queue = *entry.queue;
    if (queue.backlog_index < 0) {
      queue.in_plan_order = false;
      continue;
    }
    if (queue.view_is_current) {  // of the same head, which is no graph
      flow.plan_order[stay++] = entry;
      continue;
    }
    const uint64_t sequence = queue.head->progress.sequence;
    any_taken = any_taken || flow.WaitsForGraph(*queue.head);
    if (sequence == entry.sequence) {
      flow.plan_order[stay++] = entry;
    } else {
      moved.Add({sequence, &queue});
    }
  }
  std::sort(moved.begin(), moved.end(), GoesBefore);
  MergeInto(flow.plan_order, stay, moved);
  return any_taken;
}

// The head of a graph of which another task has begun waits until that one is complete, and one
// behind pieces of its graph until these are. A policy that saw it could choose it for ever.
void HoldForGraph(Flow& flow, Task& head) {
  Hold(flow, head,
       {.task = head.record.ticket, .reason = Reason::kHoldWindow, .value_ns = 1, .limit_ns = 1});
}

// In the order of the backlog, as the log has always had them.
void HoldTakenGraphs(Flow& flow) {
  for (const Queue* queue : flow.backlog) {
    if (flow.WaitsForGraph(*queue->head) && Offered(*queue, IsLc(*queue->head))) {
      HoldForGraph(flow, *queue->head);
    }
  }
}

const HeadView& ViewBeHead(const Flow& flow, Queue& queue, double tail_rate) {
  if (queue.view_is_current) {
    EndWaitToRunAlone(flow, *queue.head, queue.view);
  } else {
    ViewBeTask(flow, *queue.head, tail_rate, queue.view);
    queue.view_is_current = IsKept(*queue.head);
    queue.held = Reason::kNone;
  }
  return queue.view;
}

const HeadView& ViewLcHead(const Flow& flow, Queue& queue, double tail_rate) {
  queue.view = HeadView();  // its slot may have been a BE queue's
  ViewTask(flow, *queue.head, tail_rate, queue.view);
  // Each task of an app that yields waits by itself.
  queue.view.ready_count = queue.head->app->must_yield ? 1 : ReadyCount(queue);
  return queue.view;
}

}  // namespace

void ViewBeTask(const Flow& flow, Task& task, double tail_rate, HeadView& view) {
  ViewTask(flow, task, tail_rate, view);
  view.followed = IsFollowed(task);
  if (task.IsSegmented()) {
    flow.evidence.ViewGraph(task.work.kernel->id, flow.now_ns, view);
  } else {
    view.segment_gain = view.split_gain = view.split_gain_known = 0;
  }
  view.runs_alone =
      task.progress.running_index >= 0 ? task.progress.runs_alone : WaitsToRunAlone(flow, task);
}

// LC heads come first, by priority; else the order is that of submission. A plan sees all of them
// (kMaxHeads).
void ViewHeads(Flow& flow, double tail_rate) {
  const bool any_taken = OrderHeads(flow);
  if (any_taken) HoldTakenGraphs(flow);
  auto& views = flow.buffers.heads;
  auto& be = flow.buffers.be_heads;
  views.Clear();
  be.Clear();
  for (const OrderedHead& entry : flow.plan_order) {
    Queue& queue = *entry.queue;
    const bool lc = !queue.view_is_current && IsLc(*queue.head);
    if (!Offered(queue, lc)) continue;
    if (any_taken && !queue.view_is_current && flow.WaitsForGraph(*queue.head)) continue;
    if (lc) {
      if (!HeadYields(flow, *queue.head)) views.Add(&ViewLcHead(flow, queue, tail_rate));
    } else {
      be.Add(&queue);
    }
  }
  if (flow.lc_ranked) OrderByPriority(flow, views.span());
  for (Queue* const queue : be) views.Add(&ViewBeHead(flow, *queue, tail_rate));
}

void ForgetHeadViews(Flow& flow) {
  for (const OrderedHead& entry : flow.plan_order) entry.queue->view_is_current = false;
}

absl::Status CheckHeadViews(const Flow& flow) {
  for (const Queue* const queue : flow.backlog) {
    if (!queue->view_is_current) continue;
    HeadView kept = queue->view;
    EndWaitToRunAlone(flow, *queue->head, kept);
    HeadView anew;
    ViewBeTask(flow, *queue->head, 0, anew);  // no kept view depends on a tail
    const bool ready = queue->head->state.load(std::memory_order_relaxed) == TaskState::kReady;
    const bool held =
        queue->held == Reason::kNone ||
        (queue->head->progress.held_since_ns > 0 && queue->head->record.hold_reason == queue->held);
    if (ready && held && kept == anew) continue;
    return absl::InternalError(absl::StrCat("The view of ticket ", kept.task.value,
                                            " is not that of its queue's head, ticket ",
                                            anew.task.value, ", as it is now."));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::core
