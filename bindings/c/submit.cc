// Submit: queries, tasks and regions.
//
// Where in the flow: the first stage, as applications see it. Invariants: to accept a task, this
// layer takes no lock and allocates nothing; a refused task keeps no callback slot. Threads: any,
// also in callbacks (except regions).

#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/base/exhaustion.h"
#include "src/core/flow/verbs/guarded_enqueue.h"

namespace gpushare::abi {
namespace {

static_assert(sizeof(gpushare_ticket) == sizeof(core::TicketId));
static_assert(alignof(gpushare_ticket) == alignof(core::TicketId));
static_assert(sizeof(gpushare_token_stream) == sizeof(core::TokenStreamId));
static_assert(alignof(gpushare_token_stream) == alignof(core::TokenStreamId));

absl::Status CheckUnused(absl::string_view what, bool unused) {
  if (unused) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("task_options.", what, " is set, and this kind of task does not use it."));
}

// Fields that the kind does not use must be zero: a caller who sets one expects an effect.
absl::Status CheckUnusedFields(core::TaskKind kind, const gpushare_task_options& options) {
  const bool has_kernel = kind == core::TaskKind::kKernel || kind == core::TaskKind::kGraph ||
                          kind == core::TaskKind::kLibrary;
  if (!has_kernel) GPUSHARE_RETURN_IF_ERROR(CheckUnused("kernel", options.kernel == nullptr));
  if (kind != core::TaskKind::kKernel) {
    GPUSHARE_RETURN_IF_ERROR(CheckUnused("block_tasks", options.block_tasks == 0));
    GPUSHARE_RETURN_IF_ERROR(
        CheckUnused("grid_*", options.grid_x == 0 && options.grid_y == 0 && options.grid_z == 0));
  }
  if (kind != core::TaskKind::kKernel && kind != core::TaskKind::kLibrary) {
    GPUSHARE_RETURN_IF_ERROR(
        CheckUnused("arguments_size_bytes", options.arguments_size_bytes == 0));
  }
  if (kind != core::TaskKind::kLibrary && kind != core::TaskKind::kOpaque) {
    GPUSHARE_RETURN_IF_ERROR(CheckUnused("declared_ns", options.declared_ns == 0));
  }
  if (kind != core::TaskKind::kMemcpy) {
    GPUSHARE_RETURN_IF_ERROR(CheckUnused(
        "copy_*", options.copy_destination == nullptr && options.copy_source == nullptr &&
                      options.copy_size_bytes == 0 &&
                      options.copy_direction == GPUSHARE_COPY_NONE && options.copy_pageable == 0));
  }
  if (kind != core::TaskKind::kOpaque) {
    GPUSHARE_RETURN_IF_ERROR(CheckUnused("enqueue", options.enqueue == nullptr));
  }
  return absl::OkStatus();
}

absl::Status ReadCopy(const gpushare_task_options& options, core::CopyRequest& copy) {
  if (options.copy_direction < GPUSHARE_COPY_HOST_TO_DEVICE ||
      options.copy_direction > GPUSHARE_COPY_PEER) {
    return absl::InvalidArgumentError(absl::StrCat("task_options.copy_direction is ",
                                                   options.copy_direction,
                                                   ", and a copy has a direction from 1 to 3."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckBool("task_options.copy_pageable", options.copy_pageable));
  copy.direction = static_cast<core::CopyDirection>(options.copy_direction);
  copy.pinned = options.copy_pageable == 0;
  copy.bytes = options.copy_size_bytes;
  copy.destination = options.copy_destination;
  copy.source = options.copy_source;
  return absl::OkStatus();
}

absl::Status ReadKind(const QueueObject& queue, const gpushare_task_options& options,
                      core::TaskSpec& spec) {
  const KernelObject* kernel = nullptr;
  if (options.kernel != nullptr) {
    kernel = Find(options.kernel);
    if (kernel == nullptr) return Bad(options.kernel);
    if (kernel->runtime.get() != queue.runtime) {
      return absl::InvalidArgumentError("The task's kernel is registered in another runtime.");
    }
    spec.kernel = kernel->id;
  }
  if (options.kind == GPUSHARE_TASK_DEFAULT) {
    if (kernel == nullptr) {
      return absl::InvalidArgumentError("A task has neither a kind nor a kernel.");
    }
    spec.work.kind = kernel->kind;
  } else if (options.kind >= GPUSHARE_TASK_KERNEL && options.kind <= GPUSHARE_TASK_OPAQUE) {
    spec.work.kind = static_cast<core::TaskKind>(options.kind - 1);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("task_options.kind is ", options.kind, ", and it must lie between 0 and 5."));
  }
  return CheckUnusedFields(spec.work.kind, options);
}

absl::Status ReadDependencies(const gpushare_task_options& options, core::TaskSpec& spec) {
  if (options.wait_ticket_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("task_options.wait_tickets", options.wait_tickets));
  }
  if (options.wait_event_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("task_options.wait_events", options.wait_events));
  }
  // Both types are one 64-bit word, as asserted above.
  spec.wait_tickets = absl::MakeConstSpan(
      reinterpret_cast<const core::TicketId*>(options.wait_tickets), options.wait_ticket_count);
  spec.wait_events = absl::MakeConstSpan(options.wait_events, options.wait_event_count);
  spec.signal_event = options.signal_event;
  return absl::OkStatus();
}

absl::Status ReadTask(const QueueObject& queue, const gpushare_task_options& options,
                      core::TaskSpec& spec) {
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("task_options", options.reserved));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("task_options", options.reserved2, "reserved2"));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("task_options.detached", options.detached));
  GPUSHARE_RETURN_IF_ERROR(ReadKind(queue, options, spec));
  GPUSHARE_RETURN_IF_ERROR(ReadDependencies(options, spec));
  if (spec.work.kind == core::TaskKind::kMemcpy) {
    GPUSHARE_RETURN_IF_ERROR(ReadCopy(options, spec.work.copy));
  }
  spec.queue = queue.id;
  spec.query = core::QueryId{options.query.value};
  spec.work.block_tasks = options.block_tasks;
  spec.work.grid = {options.grid_x, options.grid_y, options.grid_z};
  spec.work.arguments = options.arguments;
  spec.work.arguments_bytes = options.arguments_size_bytes;
  spec.work.host_function = options.enqueue;
  spec.work.host_user = options.enqueue_user;
  spec.work.declared_ns = options.declared_ns;
  spec.arrival_ns = options.arrival_ns;
  spec.next_within_ns = options.next_within_ns;
  return absl::OkStatus();
}

using SubmitFunction = absl::StatusOr<core::TicketId> (core::Scheduler::*)(const core::TaskSpec&);

// Fills `spec`. It takes a callback slot only if it succeeds; null for a task without a callback.
absl::Status Prepare(const QueueObject& queue, const gpushare_task_options* options,
                     core::TaskSpec& spec, CallbackPool::Slot*& slot) {
  gpushare_task_options known;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("task_options", options, &known));
  GPUSHARE_RETURN_IF_ERROR(ReadTask(queue, known, spec));
  spec.detached = known.detached == 1;
  if (known.callback == nullptr) return absl::OkStatus();
  slot = queue.runtime->callbacks.Take(known.callback, known.callback_user, -1);
  if (slot == nullptr) {
    return absl::ResourceExhaustedError("Every callback slot of the runtime is taken.");
  }
  spec.callback = &CallbackPool::Run;
  spec.callback_user = slot;
  return absl::OkStatus();
}

// `detached`: without a ticket for the caller.
absl::StatusOr<core::TicketId> SubmitTo(QueueObject& queue, const gpushare_task_options* options,
                                        bool detached, SubmitFunction submit) {
  core::Scheduler& scheduler = *queue.runtime->scheduler;
  core::TaskSpec spec;
  CallbackPool::Slot* slot = nullptr;
  if (absl::Status status = Prepare(queue, options, spec, slot); !status.ok()) {
    scheduler.CountRejected(queue.id);
    return status;
  }
  spec.detached = spec.detached || detached;
  // Only a refusal allocates: its message.
  absl::StatusOr<core::TicketId> ticket =
      core::CatchExhaustion([&] { return (scheduler.*submit)(spec); });
  if (!ticket.ok() && slot != nullptr) queue.runtime->callbacks.Give(slot);
  return ticket;
}

gpushare_status Submit(gpushare_queue* handle, const gpushare_task_options* options,
                       gpushare_ticket* out_ticket, SubmitFunction submit) noexcept {
  return Enter([&]() -> absl::Status {
    if (out_ticket != nullptr) out_ticket->value = 0;
    GPUSHARE_FIND(queue, handle);
    const absl::StatusOr<core::TicketId> ticket =
        SubmitTo(*queue, options, out_ticket == nullptr, submit);
    if (!ticket.ok()) return ticket.status();
    if (out_ticket != nullptr) out_ticket->value = ticket->value;
    return absl::OkStatus();
  });
}

// What gpushare_run_lc refuses before it submits: afterwards the task would run without its caller.
absl::Status CheckRun(const gpushare_task_options* options, int64_t deadline_ns) {
  GPUSHARE_RETURN_IF_ERROR(CallbackScope::Refuse("gpushare_run_lc"));
  GPUSHARE_RETURN_IF_ERROR(CheckDeadline(deadline_ns));
  gpushare_task_options known;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("task_options", options, &known));
  return CheckUnused("detached", known.detached == 0);
}

// Waits for the task and gives its ticket back, or to the caller where that has more to do with it.
absl::Status FinishRun(core::Scheduler& scheduler, core::TicketId ticket, int64_t deadline_ns,
                       gpushare_verdict* out_verdict, gpushare_ticket* out_ticket) {
  absl::Status status = scheduler.Wait(ticket, deadline_ns);
  core::Verdict verdict = core::Verdict::kPending;
  if (status.ok()) {
    const absl::StatusOr<core::Verdict> ended = scheduler.VerdictOf(ticket);
    if (!ended.ok()) return ended.status();
    verdict = *ended;
  }
  if (out_verdict != nullptr) *out_verdict = static_cast<gpushare_verdict>(verdict);
  if (out_ticket != nullptr && verdict != core::Verdict::kOk) {
    out_ticket->value = ticket.value;
  } else if (absl::Status released = scheduler.ReleaseTicket(ticket); !released.ok()) {
    return released;
  }
  return status;
}

}  // namespace
}  // namespace gpushare::abi

using gpushare::abi::CheckNotNull;
using gpushare::abi::Enter;
using gpushare::core::Scheduler;

gpushare_status gpushare_submit_lc(gpushare_queue* queue, const gpushare_task_options* options,
                                   gpushare_ticket* out_ticket) noexcept {
  return gpushare::abi::Submit(queue, options, out_ticket, &Scheduler::SubmitLc);
}

gpushare_status gpushare_submit_be(gpushare_queue* queue, const gpushare_task_options* options,
                                   gpushare_ticket* out_ticket) noexcept {
  return gpushare::abi::Submit(queue, options, out_ticket, &Scheduler::SubmitBe);
}

gpushare_status gpushare_run_lc(gpushare_queue* queue, const gpushare_task_options* options,
                                int64_t deadline_ns, gpushare_verdict* out_verdict,
                                gpushare_ticket* out_ticket) noexcept {
  return Enter([&]() -> absl::Status {
    if (out_verdict != nullptr) *out_verdict = GPUSHARE_VERDICT_PENDING;
    if (out_ticket != nullptr) out_ticket->value = 0;
    GPUSHARE_FIND(object, queue);
    Scheduler& scheduler = *object->runtime->scheduler;
    if (absl::Status bad = gpushare::abi::CheckRun(options, deadline_ns); !bad.ok()) {
      scheduler.CountRejected(object->id);
      return bad;
    }
    const auto ticket = gpushare::abi::SubmitTo(*object, options, false, &Scheduler::SubmitLc);
    if (!ticket.ok()) return ticket.status();
    return gpushare::abi::FinishRun(scheduler, *ticket, deadline_ns, out_verdict, out_ticket);
  });
}

gpushare_status gpushare_enqueue_fail(const char* reason) noexcept {
  return Enter([&]() -> absl::Status {
    if (gpushare::core::GuardedEnqueue::Fail(reason == nullptr ? "" : reason)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        "gpushare_enqueue_fail is called outside of an enqueue callback.");
  });
}

gpushare_status gpushare_query_begin(gpushare_queue* queue, int64_t arrival_ns,
                                     gpushare_query* out_query) noexcept {
  gpushare_query_options options = GPUSHARE_QUERY_OPTIONS_INIT;
  options.arrival_ns = arrival_ns;
  return gpushare_query_begin_with(queue, &options, out_query);
}

gpushare_status gpushare_query_begin_with(gpushare_queue* queue,
                                          const gpushare_query_options* options,
                                          gpushare_query* out_query) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, queue);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_query", out_query));
    out_query->value = 0;
    gpushare_query_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("query_options", options, &known));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckReserved("query_options", known.reserved));
    if (known.arrival_ns < 0) {
      return absl::InvalidArgumentError(absl::StrCat("The query's arrival is ", known.arrival_ns,
                                                     " ns, and a time is not negative."));
    }
    const auto query =
        object->runtime->scheduler->BeginQuery(object->id, known.arrival_ns, known.input_size);
    if (!query.ok()) return query.status();
    out_query->value = query->value;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_query_end(gpushare_runtime* runtime, gpushare_query query) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return object->scheduler->EndQuery(gpushare::core::QueryId{query.value});
  });
}

gpushare_status gpushare_query_abandon(gpushare_app* app, int64_t idle_ns,
                                       int32_t* out_count) noexcept {
  return Enter([&]() -> absl::Status {
    if (out_count != nullptr) *out_count = 0;
    GPUSHARE_FIND(object, app);
    if (idle_ns < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("idle_ns is ", idle_ns, ", and it must be 0 or more."));
    }
    const absl::StatusOr<int32_t> abandoned =
        object->runtime->scheduler->AbandonQueries(object->id, idle_ns);
    if (!abandoned.ok()) return abandoned.status();
    if (out_count != nullptr) *out_count = *abandoned;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_token_stream_begin(gpushare_app* app, int64_t arrival_ns,
                                            gpushare_token_stream* out_stream) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, app);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_stream", out_stream));
    out_stream->value = 0;
    const auto stream = object->runtime->scheduler->BeginTokenStream(object->id, arrival_ns);
    if (!stream.ok()) return stream.status();
    out_stream->value = stream->value;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_token_stream_mark(gpushare_runtime* runtime,
                                           const gpushare_token_stream* streams, uint32_t count,
                                           gpushare_ticket ticket) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    if (count > 0) GPUSHARE_RETURN_IF_ERROR(CheckNotNull("streams", streams));
    // Both types are one 64-bit word, as asserted above.
    const auto* const ids = reinterpret_cast<const gpushare::core::TokenStreamId*>(streams);
    return object->scheduler->MarkTokens(absl::MakeConstSpan(ids, count),
                                         gpushare::core::TicketId{ticket.value});
  });
}

gpushare_status gpushare_token_stream_end(gpushare_runtime* runtime,
                                          gpushare_token_stream stream) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return object->scheduler->EndTokenStream(gpushare::core::TokenStreamId{stream.value});
  });
}

gpushare_status gpushare_region_begin(gpushare_queue* queue, const gpushare_region_options* options,
                                      gpushare_ticket* out_ticket, void** out_stream) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, queue);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_ticket", out_ticket));
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_stream", out_stream));
    out_ticket->value = 0;
    *out_stream = nullptr;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_region_begin"));
    gpushare_region_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("region_options", options, &known));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckReserved("region_options", known.reserved));
    for (const auto& [what, value] :
         {std::pair{"bound_ns", known.bound_ns}, std::pair{"arrival_ns", known.arrival_ns},
          std::pair{"wait_ns", known.wait_ns}}) {
      if (value >= 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("region_options.", what, " is ", value, ", and it is not negative."));
    }
    const auto ticket =
        object->runtime->scheduler->RegionBegin(object->id,
                                                {.bound_ns = known.bound_ns,
                                                 .arrival_ns = known.arrival_ns,
                                                 .input_size = known.input_size,
                                                 .next_within_ns = known.next_within_ns},
                                                out_stream, known.wait_ns);
    if (!ticket.ok()) return ticket.status();
    out_ticket->value = ticket->value;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_region_room(gpushare_runtime* runtime, int64_t* out_room_ns) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_room_ns", out_room_ns));
    *out_room_ns = 0;
    const absl::StatusOr<int64_t> room_ns = object->scheduler->RegionRoomNs();
    if (!room_ns.ok()) return room_ns.status();
    *out_room_ns = *room_ns;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_region_end(gpushare_runtime* runtime, gpushare_ticket region) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return object->scheduler->RegionEnd(gpushare::core::TicketId{region.value});
  });
}
