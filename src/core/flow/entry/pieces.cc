// Submits the pieces of a query's graph. See pieces.h.

#include "src/core/flow/entry/pieces.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/base/containers/bounded_list.h"
#include "src/core/base/ids.h"
#include "src/core/base/limits.h"
#include "src/core/flow/verbs/accept.h"
#include "src/core/log/events.h"
#include "src/core/state/launches/graph_use.h"
#include "src/core/state/shared/route.h"

namespace gpushare::core {
namespace {

const std::vector<GraphPiece>& PiecesOf(const KernelDesc& graph) { return graph.graph()->pieces; }

// Each query in flight has at most as many tasks. Half of the slots stay for tickets that are not
// released.
bool HasRoom(const App& app, size_t pieces) {
  const int64_t queries = app.active_queries.load(std::memory_order_relaxed) + 1;
  return queries * static_cast<int64_t>(pieces) <= app.options.tasks_max / 2;
}

Work WorkOf(const GraphPiece& piece) {
  Work work;
  work.kind = piece.is_node ? TaskKind::kKernel : TaskKind::kGraph;
  work.block_tasks = piece.is_node ? piece.block_tasks : 0;
  work.grid = piece.grid;
  work.arguments = piece.arguments.data();
  work.arguments_bytes = piece.arguments.size();
  return work;
}

// The task of a piece. The first one waits for what the graph waits for; the last one has the
// ticket, the callback and the event.
TaskSpec SpecOf(const TaskSpec& whole, const GraphPiece& piece, bool first, bool last) {
  TaskSpec spec;
  spec.queue = whole.queue;
  spec.query = whole.query;
  spec.kernel = piece.kernel;
  spec.arrival_ns = whole.arrival_ns;
  spec.work = WorkOf(piece);
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

// What a query in pieces needs, taken before any of it is used. From then on nothing fails.
class Reservation {
 public:
  Reservation(Flow& flow, Queue& queue, const KernelDesc& graph)
      : flow_(flow), queue_(queue), graph_(graph) {}
  ~Reservation() {
    if (kept_) return;
    for (int i = 0; i < tasks_.size(); ++i) DropReserved(flow_, *tasks_[i], KernelOf(i));
    if (own_query_ != nullptr) flow_.tables.FreeQuery(*own_query_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  // False: something is missing, and nothing is taken once this ends.
  bool Take(const TaskSpec& spec, QuerySlot* query) {
    const std::vector<GraphPiece>& pieces = PiecesOf(graph_);
    for (size_t i = 0; i < pieces.size(); ++i) {
      NotReserved why{};
      const Work work = WorkOf(pieces[i]);
      Task* const task = ReserveTask(flow_, queue_, work, KernelOf(static_cast<int>(i)), why);
      if (task == nullptr) return false;
      tasks_.Add(task);
    }
    if (query == nullptr) {
      const TimeNs arrival_ns = spec.arrival_ns == 0 ? flow_.device->NowNs() : spec.arrival_ns;
      own_query_ = flow_.tables.TryAllocateQuery(queue_, arrival_ns, spec.input_size);
      if (own_query_ == nullptr) return false;
    }
    // Last, because other queues wait from here on until the last piece is complete, which gives it
    // back. It also keeps what the device made of the graph.
    kept_ = flow_.tables.UseOf(graph_.id).EnterInPieces(SlotOf(queue_));
    return kept_;
  }

  absl::Span<Task* const> tasks() const { return tasks_.span(); }
  const KernelDesc* KernelOf(int piece) const {
    return flow_.tables.FindKernel(PiecesOf(graph_)[static_cast<size_t>(piece)].kernel);
  }
  QuerySlot* own_query() const { return own_query_; }

 private:
  Flow& flow_;
  Queue& queue_;
  const KernelDesc& graph_;
  BoundedList<Task*, kMaxPieces> tasks_;
  QuerySlot* own_query_ = nullptr;
  bool kept_ = false;  // all of it: it belongs to the flow
};

// The query of a graph that was submitted without one begins.
void BeginOwnQuery(Flow& flow, QuerySlot& slot, const TaskSpec& spec) {
  const QueryState& query = slot.state;
  query.app->active_queries.fetch_add(1, std::memory_order_acq_rel);
  if (flow.HasEvents()) {
    flow.EmitAt(flow.device->NowNs(), QueryBeginCalled{.query = query.id,
                                                       .app = AppId{query.app->id.load()},
                                                       .queue = spec.queue,
                                                       .arrival_ns = query.arrival_ns,
                                                       .input_size = query.input_size});
  }
  flow.ring.Push(PackRing(RingTag::kQueryBegun, query.id.value));
}

// `query`: of a query whose tasks the flow has, so that its slot may be another one's.
void EndOwnQuery(Flow& flow, QueryId query, const App& app, const TaskSpec& spec) {
  if (flow.HasEvents()) {
    flow.EmitAt(flow.device->NowNs(),
                QueryEndCalled{.query = query, .app = AppId{app.id.load()}, .queue = spec.queue});
  }
  flow.ring.Push(PackRing(RingTag::kQueryEnded, query.value));
}

// Makes the tasks those of the pieces, and links them.
void AcceptPieces(Flow& flow, Queue& queue, const TaskSpec& spec, const KernelDesc& graph,
                  const Reservation& reserved, QuerySlot* query) {
  const std::vector<GraphPiece>& pieces = PiecesOf(graph);
  Task* before = nullptr;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Task& task = *reserved.tasks()[i];
    const bool last = i + 1 == pieces.size();
    AcceptReserved(flow, queue, SpecOf(spec, pieces[i], i == 0, last),
                   reserved.KernelOf(static_cast<int>(i)), query, task);
    task.piece.graph = &graph;
    task.piece.first = i == 0;
    task.piece.before = before;
    if (before != nullptr) before->piece.next = &task;
    before = &task;
  }
}

// Whether the route of the app wants its graphs in pieces, and this one may be.
bool IsWanted(const Flow& flow, const Queue& queue, const TaskSpec& spec, const KernelDesc* graph) {
  if (graph == nullptr || graph->graph() == nullptr || PiecesOf(*graph).empty()) return false;
  const App& app = *queue.app;
  const LcRoute route = UnpackRoute(app.route.load(std::memory_order_seq_cst));
  if (!route.cuts_graphs || !flow.tables.UseOf(graph->id).MayEnterInPieces(SlotOf(queue))) {
    return false;
  }
  return !app.options.drop_late && !app.options.Yields() && spec.work.kind == TaskKind::kGraph &&
         HasRoom(app, PiecesOf(*graph).size());
}

// Closes the fast path of the queue for `pieces` tasks that come. False: another thread is inside a
// submit of the app, and may be launching by the fast path, behind which it found nothing. A thread
// that comes later finds these tasks. Both sides write before they read, so that at least one sees
// the other. Looks before it writes, too: a region that another thread begins sees these tasks.
bool CloseFastPath(Queue& queue, int32_t pieces) {
  if (queue.app->submitters.load(std::memory_order_relaxed) != 1) return false;
  queue.unlaunched.fetch_add(pieces, std::memory_order_seq_cst);
  if (queue.app->submitters.load(std::memory_order_seq_cst) == 1) return true;
  queue.unlaunched.fetch_sub(pieces, std::memory_order_seq_cst);
  return false;
}

}  // namespace

TicketId SubmitPieces(Flow& flow, Queue& queue, const TaskSpec& spec, const KernelDesc* graph,
                      QuerySlot* query) {
  if (!IsWanted(flow, queue, spec, graph)) return TicketId{};
  const auto pieces = static_cast<int32_t>(PiecesOf(*graph).size());
  if (!CloseFastPath(queue, pieces)) return TicketId{};
  Reservation reserved(flow, queue, *graph);
  if (!reserved.Take(spec, query)) {
    queue.unlaunched.fetch_sub(pieces, std::memory_order_acq_rel);
    return TicketId{};
  }
  QuerySlot* const own = reserved.own_query();
  const QueryId own_id = own == nullptr ? QueryId{} : own->state.id;
  if (own != nullptr) BeginOwnQuery(flow, *own, spec);
  AcceptPieces(flow, queue, spec, *graph, reserved, own != nullptr ? own : query);
  // The caller holds the queue for one of them.
  queue.tasks_open.fetch_add(pieces - 1);
  const TicketId first = reserved.tasks().front()->record.ticket;
  const TicketId last = reserved.tasks().back()->record.ticket;
  flow.ring.Push(PackRing(RingTag::kSubmitted, first.value));
  if (own != nullptr) EndOwnQuery(flow, own_id, *queue.app, spec);
  return last;
}

}  // namespace gpushare::core
