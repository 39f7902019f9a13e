// A query's graph submitted in pieces: graph part, kernel node, graph part, ... (node_cut.h).
//
//   if (MayCut(flow, queue, spec, graph)) ...   the route asks for it, and nobody else submits
//   SubmitPieces(...)                           one task a piece, one ticket: the last piece's
//
// The pieces stand behind one another in the queue and nothing comes between them: the first one's
// word in the ring brings all of them, and no fast path of the queue is open while they are not
// launched. The last piece has the caller's callback, event and ticket. Its record is that of the
// whole graph, and its verdict that of the first piece that failed (flow/verbs/finish).
// Threads: the submitter's. Allocates only for an error's message.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_PIECES_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_PIECES_H_

#include "absl/status/statusor.h"
#include "src/core/state/flow.h"

namespace gpushare::core {

// Whether the task is an LC graph that the app's route wants in pieces, and may be. The thread is
// inside the submit. True: no other thread was, and from now on none launches work of the queue by
// the fast path. Then SubmitPieces follows.
bool EnterPieces(Queue& queue, const TaskSpec& spec, const KernelDesc* graph);

// `query`: the one that the spec names; null: the pieces get one of their own. Without an own
// query left (RESOURCE_EXHAUSTED) or after another error no piece runs. The caller's hold of the
// queue, and its waits, are the first piece's.
absl::StatusOr<TicketId> SubmitPieces(Flow& flow, Queue& queue, const TaskSpec& spec,
                                      const KernelDesc& graph, QuerySlot* query);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_PIECES_H_
