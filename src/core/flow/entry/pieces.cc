// Submits the pieces of a query's graph. See pieces.h.

#include "src/core/flow/entry/pieces.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/flow/verbs/accept.h"
#include "src/core/log/events.h"
#include "src/core/state/launches/graph_use.h"
#include "src/core/state/shared/route.h"

namespace gpushare::core {
namespace {

const std::vector<GraphPiece>& PiecesOf(const KernelDesc& graph) { return graph.graph()->pieces; }

// Each query in flight has at most as many tasks. Half of the slots stay for tickets that are not
// released.
bool HasRoom(const App& app, const TaskSpec& spec, size_t pieces) {
  const bool has_query = spec.query || app.queries_open.load() < app.options.tasks_max;
  if (!has_query) return false;
  const int64_t queries = app.active_queries.load(std::memory_order_relaxed) + 1;
  return queries * static_cast<int64_t>(pieces) <= app.options.tasks_max / 2;
}

// The task of a piece. The first one waits for what the graph waits for; the last one tells.
TaskSpec SpecOf(const TaskSpec& whole, const GraphPiece& piece, bool first, bool last) {
  TaskSpec spec;
  spec.queue = whole.queue;
  spec.query = whole.query;
  spec.kernel = piece.kernel;
  spec.arrival_ns = whole.arrival_ns;
  spec.work.kind = piece.is_node ? TaskKind::kKernel : TaskKind::kGraph;
  spec.work.block_tasks = piece.is_node ? piece.block_tasks : 0;
  spec.work.grid = piece.grid;
  spec.work.arguments = piece.arguments.data();
  spec.work.arguments_bytes = piece.arguments.size();
  if (first) {
    spec.wait_tickets = whole.wait_tickets;
    spec.wait_events = whole.wait_events;
  }
  spec.detached = !last || whole.detached;
  if (last) {
    spec.signal_event = whole.signal_event;
    spec.callback = whole.callback;
    spec.callback_user = whole.callback_user;
    spec.next_within_ns = whole.next_within_ns;
  }
  return spec;
}

// The query of a graph that was submitted without one. Null: there is no slot.
QuerySlot* BeginOwnQuery(Flow& flow, Queue& queue, const TaskSpec& spec) {
  const TimeNs now_ns = flow.device->NowNs();
  const TimeNs arrival_ns = spec.arrival_ns == 0 ? now_ns : spec.arrival_ns;
  const absl::StatusOr<QueryId> query =
      flow.tables.AllocateQuery(queue, arrival_ns, spec.input_size);
  if (!query.ok()) return nullptr;
  App& app = *queue.app;
  app.active_queries.fetch_add(1, std::memory_order_acq_rel);
  if (flow.HasEvents()) {
    flow.EmitAt(now_ns, QueryBeginCalled{.query = *query,
                                         .app = AppId{app.id.load()},
                                         .queue = spec.queue,
                                         .arrival_ns = arrival_ns,
                                         .input_size = spec.input_size});
  }
  flow.ring.Push(PackRing(RingTag::kQueryBegun, query->value));
  return flow.tables.FindQuery(*query);
}

void EndOwnQuery(Flow& flow, QuerySlot& slot, const TaskSpec& spec) {
  const QueryId query = slot.state.id;
  slot.open.store(false);
  if (flow.HasEvents()) {
    flow.EmitAt(flow.device->NowNs(),
                QueryEndCalled{
                    .query = query, .app = AppId{slot.queue->app->id.load()}, .queue = spec.queue});
  }
  flow.ring.Push(PackRing(RingTag::kQueryEnded, query.value));
}

// Accepts the pieces in order and links them. `count`: of those that were accepted.
absl::StatusOr<Task*> AcceptPieces(Flow& flow, Queue& queue, const TaskSpec& spec,
                                   const KernelDesc& graph, QuerySlot* query, Task*& first,
                                   int32_t& count) {
  const std::vector<GraphPiece>& pieces = PiecesOf(graph);
  Task* before = nullptr;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const KernelDesc* const kernel = flow.tables.FindKernel(pieces[i].kernel);
    const bool last = i + 1 == pieces.size();
    // The graph's own use, which the last piece gives back, keeps all of them.
    absl::StatusOr<Task*> task =
        AcceptTask(flow, queue, SpecOf(spec, pieces[i], i == 0, last), kernel, query);
    if (!task.ok()) return task.status();
    (*task)->piece.graph = &graph;
    if (before != nullptr) before->piece.next = (*task)->record.ticket;
    if (first == nullptr) first = *task;
    before = *task;
    ++count;
  }
  return before;
}

}  // namespace

bool EnterPieces(Queue& queue, const TaskSpec& spec, const KernelDesc* graph) {
  if (graph == nullptr || graph->graph() == nullptr || PiecesOf(*graph).empty()) return false;
  App& app = *queue.app;
  if (app.options.app_class != AppClass::kLatencyCritical) return false;
  const LcRoute route = UnpackRoute(app.route.load(std::memory_order_seq_cst));
  const size_t pieces = PiecesOf(*graph).size();
  const bool wanted = route.cuts_graphs && !app.options.drop_late && !app.options.Yields() &&
                      spec.work.kind == TaskKind::kGraph && HasRoom(app, spec, pieces);
  if (!wanted) return false;
  // A submitter that came before may be launching by the fast path, behind which it found nothing.
  // One that comes later finds these tasks. Both sides write before they read, so that at least one
  // sees the other.
  const auto count = static_cast<int32_t>(pieces);
  queue.unlaunched.fetch_add(count, std::memory_order_seq_cst);
  if (app.submitters.load(std::memory_order_seq_cst) == 1) return true;
  queue.unlaunched.fetch_sub(count, std::memory_order_seq_cst);
  return false;
}

absl::StatusOr<TicketId> SubmitPieces(Flow& flow, Queue& queue, const TaskSpec& spec,
                                      const KernelDesc& graph, QuerySlot* query) {
  const auto pieces = static_cast<int32_t>(PiecesOf(graph).size());
  const auto give_up = [&](int32_t accepted) {
    queue.unlaunched.fetch_sub(pieces - accepted, std::memory_order_acq_rel);
  };
  if (flow.tables.UseOf(graph.id).Enter(GraphUser::kLc, false) != GraphUse::Answer::kEntered) {
    give_up(0);
    return absl::FailedPreconditionError(
        absl::StrCat("Graph '", graph.name, "' is released and takes no more tasks."));
  }
  QuerySlot* const own = query == nullptr ? BeginOwnQuery(flow, queue, spec) : nullptr;
  if (query == nullptr && own == nullptr) {
    give_up(0);
    flow.tables.UseOf(graph.id).Leave();
    return absl::ResourceExhaustedError(absl::StrCat("App '", queue.app->options.name,
                                                     "' has no query left for graph '", graph.name,
                                                     "', which is submitted in pieces."));
  }
  Task* first = nullptr;
  int32_t accepted = 0;
  const absl::StatusOr<Task*> last =
      AcceptPieces(flow, queue, spec, graph, own != nullptr ? own : query, first, accepted);
  give_up(accepted);
  // The caller holds the queue for the first one.
  if (accepted > 1) queue.tasks_open.fetch_add(accepted - 1);
  if (!last.ok()) {
    // What was accepted completes, and does nothing.
    flow.tables.UseOf(graph.id).Leave();
    for (Task* task = first; task != nullptr; task = flow.tables.FindTask(task->piece.next)) {
      task->cancel_requested.store(true);
      task->piece.graph = nullptr;
    }
  }
  const TicketId ticket = last.ok() ? (*last)->record.ticket : TicketId{};
  if (first != nullptr) flow.ring.Push(PackRing(RingTag::kSubmitted, first->record.ticket.value));
  if (own != nullptr) EndOwnQuery(flow, *own, spec);
  if (!last.ok()) return last.status();
  return ticket;
}

}  // namespace gpushare::core
