// The verb "accept". See accept.h.

#include "src/core/flow/verbs/accept.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/log/label.h"
#include "src/core/state/launches/graph_use.h"

namespace gpushare::core {
namespace {

// Copies the arguments into the task's slot, or into one of the app's pool when they are large.
// False: the pool is empty.
bool CopyArguments(App& app, Task& task, const Work& work) {
  task.large_arguments = -1;
  task.work.arguments = nullptr;
  if (work.arguments_bytes == 0) return true;
  std::byte* to = task.arguments.data();
  if (work.arguments_bytes > kInlineArgumentBytes) {
    uint32_t slot = 0;
    if (!app.free_large->TryPop(slot)) return false;
    task.large_arguments = static_cast<int32_t>(slot - 1);
    to = app.large[slot - 1].bytes.data();
  }
  std::memcpy(to, work.arguments, work.arguments_bytes);
  task.work.arguments = to;
  return true;
}

void FreeSlots(App& app, Task& task) {
  if (task.large_arguments >= 0) {
    app.free_large->Push(static_cast<uint32_t>(task.large_arguments) + 1);
    task.large_arguments = -1;
  }
  app.free_tasks->Push(task.slot + 1);
}

GraphUser UserOf(const AppOptions& app) {
  if (app.app_class == AppClass::kBestEffort) return GraphUser::kBe;
  return app.Yields() ? GraphUser::kYieldingLc : GraphUser::kLc;
}

// "for latency-critical apps that yield" and "of a latency-critical app that yields".
std::string Apps(GraphUser user, bool one) {
  return absl::StrCat(one ? "a " : "",
                      user == GraphUser::kBe ? "best-effort app" : "latency-critical app",
                      one ? "" : "s",
                      user != GraphUser::kYieldingLc ? ""
                      : one                          ? " that yields"
                                                     : " that yield");
}

// Counts the task as one of its graph. A graph that can run in segments is of one kind of apps,
// that of its first task: all tasks of it use the buffers of one capture, and LC work cannot wait
// until a task of another kind is complete. The kind stays, so nothing of the submit of such a
// graph may fail after this.
GraphUse::Answer EnterGraph(Flow& flow, const KernelDesc* kernel, const Queue& queue, Task& task) {
  task.behind_pieces = false;
  if (kernel == nullptr || kernel->kind() != TaskKind::kGraph) return GraphUse::Answer::kEntered;
  return flow.tables.UseOf(kernel->id)
      .Enter(UserOf(queue.app->options), kernel->segments() > 1, SlotOf(queue), task.behind_pieces);
}

absl::Status GraphTakesNoTask(Flow& flow, const KernelDesc& kernel, const AppOptions& app,
                              bool released) {
  if (released) {
    return absl::FailedPreconditionError(
        absl::StrCat("Graph '", kernel.name, "' is released and takes no more tasks."));
  }
  const GraphUser first = flow.tables.UseOf(kernel.id).first_user();
  return absl::FailedPreconditionError(absl::StrCat(
      "Graph '", kernel.name, "' runs ", first == GraphUser::kLc ? "whole" : "in segments", " for ",
      Apps(first, false), ", and a task of ", Apps(UserOf(app), true),
      " would use the same buffers; register a second capture for it."));
}

absl::Status ErrorOf(Flow& flow, const App& app, const KernelDesc* kernel, NotReserved why) {
  switch (why) {
    case NotReserved::kNoTask:
      return absl::ResourceExhaustedError(
          absl::StrCat("App '", app.options.name, "' has ", app.options.tasks_max,
                       " tasks that are not complete or not released."));
    case NotReserved::kNoLargeArguments:
      return absl::ResourceExhaustedError(absl::StrCat("App '", app.options.name, "' has ",
                                                       kLargeArgumentSlotsPerApp,
                                                       " tasks with large arguments in flight."));
    case NotReserved::kReleased:
    case NotReserved::kOtherUser:
      break;
  }
  return GraphTakesNoTask(flow, *kernel, app.options, why == NotReserved::kReleased);
}

// The graphs of LC apps run whole, unless their app yields.
int64_t BlockTasksOf(const Work& work, const KernelDesc* kernel, const AppOptions& app) {
  switch (work.kind) {
    case TaskKind::kKernel:
      return work.block_tasks;
    case TaskKind::kGraph:
      return UserOf(app) == GraphUser::kLc ? 1 : kernel->segments();
    case TaskKind::kMemcpy:
      return work.copy.bytes;
    default:
      return 1;
  }
}

// Makes the slot a new task. What identifies the slot (app, index, generation) stays.
void Fill(Task& task, Queue& queue, const TaskSpec& spec, const KernelDesc* kernel, TimeNs now_ns) {
  task.complete.store(false, std::memory_order_relaxed);
  task.cancel_requested.store(false, std::memory_order_relaxed);
  task.region.store(RegionPhase::kNone, std::memory_order_relaxed);
  task.spin_until_ns.store(0, std::memory_order_relaxed);
  task.queue = &queue;
  task.query = nullptr;
  task.explicit_query = nullptr;
  const void* const arguments = task.work.arguments;  // ReserveTask set it, and behind_pieces
  task.work = spec.work;
  task.work.kernel = kernel;
  task.work.block_tasks = BlockTasksOf(spec.work, kernel, task.app->options);
  task.work.arguments = arguments;
  task.wait_tickets.Assign(spec.wait_tickets);
  task.wait_events.Assign(spec.wait_events);
  task.signal_event = spec.signal_event;
  task.callback = spec.callback;
  task.callback_user = spec.callback_user;
  task.next_within_ns = spec.next_within_ns;
  task.piece = PieceOfGraph();
  task.progress = Progress{};  // braces: Progress() would zero the storage of its parts first
  task.record = CompletionRecord();
  task.record.ticket = Tables::TicketOf(task);
  task.record.app = AppId{task.app->id.load(std::memory_order_relaxed)};
  task.record.queue = QueueId{queue.id.load(std::memory_order_relaxed)};
  task.record.kernel = kernel == nullptr ? KernelId{} : kernel->id;
  task.record.kind = spec.work.kind;
  task.record.submit_ns = now_ns;
}

// The query that the task belongs to. BE work has none.
void JoinQuery(Task& task, QuerySlot* slot, TimeNs arrival_ns, double input_size) {
  if (slot != nullptr) {
    slot->tasks_submitted.fetch_add(1, std::memory_order_acq_rel);
    task.explicit_query = slot;
    task.query = &slot->state;
  } else if (task.app->options.app_class == AppClass::kLatencyCritical) {
    task.own_query = QueryState();
    task.own_query.id = QueryId{task.record.ticket.value | kImplicitQueryBit};
    task.own_query.app = task.app;
    task.own_query.queue = task.queue;
    task.own_query.arrival_ns = arrival_ns;
    task.own_query.input_size = input_size;
    task.query = &task.own_query;
    task.app->active_queries.fetch_add(1, std::memory_order_acq_rel);
  } else {
    return;
  }
  task.record.query = task.query->id;
}

// In the log, a task's waits follow its submission.
void EmitWaits(const Flow& flow, const Task& task) {
  for (int first = 0; first < task.wait_tickets.size(); first += Waits::kTickets) {
    Waits waits{.ticket = task.record.ticket, .app = task.record.app, .waits_for = {}};
    const int count = std::min(Waits::kTickets, task.wait_tickets.size() - first);
    for (int i = 0; i < count; ++i) {
      waits.waits_for[static_cast<size_t>(i)] = task.wait_tickets[first + i];
    }
    flow.EmitAt(task.record.submit_ns, waits);
  }
}

void EmitSubmitted(const Flow& flow, const Task& task) {
  if (!flow.HasEvents()) return;  // the query's state is the flow's: a cold line
  const Work& work = task.work;
  const bool declared = work.kind == TaskKind::kLibrary || work.kind == TaskKind::kOpaque;
  const bool copies = work.kind == TaskKind::kMemcpy;
  flow.EmitAt(task.record.submit_ns,
              Submitted{.task = LabelOf(task),
                        .queue = task.record.queue,
                        .amount = declared ? work.declared_ns : work.block_tasks,
                        .query = task.record.query,
                        .arrival_ns = task.query == nullptr ? 0 : task.query->arrival_ns,
                        .kind = work.kind,
                        .copy = copies ? Submitted::PackCopy(work.copy.direction, work.copy.pinned)
                                       : uint16_t{0}});
  EmitWaits(flow, task);
  const bool own_query = task.query == &task.own_query;
  const double input_size = own_query ? task.own_query.input_size : 0;
  if (task.next_within_ns == 0 && input_size == 0) return;
  flow.EmitAt(task.record.submit_ns, NextStated{.ticket = task.record.ticket,
                                                .app = task.record.app,
                                                .within_ns = task.next_within_ns,
                                                .input_size = input_size});
}

}  // namespace

absl::Status RefusalOf(const Flow& flow) {
  if (flow.device_lost.load()) {
    return absl::UnavailableError("The device is lost and takes no more work.");
  }
  return absl::FailedPreconditionError("The runtime is shut down and takes no more work.");
}

absl::Status QueueReleased(QueueId id) {
  return absl::InvalidArgumentError(
      absl::StrCat("Queue ", id.value, " does not exist or is released."));
}

Task* ReserveTask(Flow& flow, const Queue& queue, const Work& work, const KernelDesc* kernel,
                  NotReserved& why) {
  App& app = *queue.app;
  Task* const task = flow.tables.AllocateTask(app);
  if (task == nullptr) {
    why = NotReserved::kNoTask;
    return nullptr;
  }
  if (!CopyArguments(app, *task, work)) {
    FreeSlots(app, *task);
    why = NotReserved::kNoLargeArguments;
    return nullptr;
  }
  const GraphUse::Answer entered = EnterGraph(flow, kernel, queue, *task);
  if (entered != GraphUse::Answer::kEntered) {
    FreeSlots(app, *task);
    why = entered == GraphUse::Answer::kRetired ? NotReserved::kReleased : NotReserved::kOtherUser;
    return nullptr;
  }
  return task;
}

void DropReserved(Flow& flow, Task& task, const KernelDesc* kernel) {
  if (kernel != nullptr && kernel->kind() == TaskKind::kGraph) {
    flow.tables.UseOf(kernel->id).Leave();
  }
  FreeSlots(*task.app, task);
}

void AcceptReserved(Flow& flow, Queue& queue, const TaskSpec& spec, const KernelDesc* kernel,
                    QuerySlot* query, Task& task) {
  App& app = *queue.app;
  const TimeNs now = flow.device->NowNs();
  Fill(task, queue, spec, kernel, now);
  JoinQuery(task, query, spec.arrival_ns == 0 ? now : spec.arrival_ns, spec.input_size);
  const uint64_t generation = GenerationOf(task.slot_word.load(std::memory_order_relaxed));
  task.slot_word.store(
      FreeWord(generation) | kHeldByFlow | (spec.detached ? kDetached : kHeldByCaller),
      std::memory_order_release);
  task.state.store(TaskState::kSubmitted, std::memory_order_relaxed);
  app.submitted.fetch_add(1, std::memory_order_relaxed);
  flow.counters.pending.fetch_add(1, std::memory_order_acq_rel);
  EmitSubmitted(flow, task);
}

absl::StatusOr<Task*> AcceptTask(Flow& flow, Queue& queue, const TaskSpec& spec,
                                 const KernelDesc* kernel, QuerySlot* query) {
  NotReserved why{};
  Task* const task = ReserveTask(flow, queue, spec.work, kernel, why);
  if (task == nullptr) return ErrorOf(flow, *queue.app, kernel, why);
  AcceptReserved(flow, queue, spec, kernel, query, *task);
  return task;
}

}  // namespace gpushare::core
