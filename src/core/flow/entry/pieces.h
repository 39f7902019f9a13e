// A query's graph submitted in pieces: graph part, kernel node, graph part, ... (node_cut.h).
//
//   TicketId last = SubmitPieces(...);   // one task a piece, one ticket: the last piece's
//   if (!last) ...                       // it runs whole, as any task
//
// A query is submitted in pieces if its app's route asks for it, nobody else submits to the app,
// and no task of the graph is open on another queue: CUDA orders the launches of one graph, and not
// its pieces. What other queues submit meanwhile runs whole, and waits for them (GraphUse). All
// slots are reserved first: either every piece is accepted, or none, and the graph runs whole.
//
// The pieces stand behind one another in the queue and nothing comes between them: the first one's
// word in the ring brings all of them, and no fast path of the queue is open while they are not
// launched. They complete in their order (flow/verbs/finish). The last piece has the caller's
// callback, event and ticket. Its record is that of the whole graph, and its verdict that of the
// first piece that did not succeed. Threads: the submitter's. Never allocates.

#ifndef GPUSHARE_SRC_CORE_FLOW_ENTRY_PIECES_H_
#define GPUSHARE_SRC_CORE_FLOW_ENTRY_PIECES_H_

#include "src/core/state/flow.h"

namespace gpushare::core {

// The thread is inside the submit of LC work, which was checked. `query`: the one that the spec
// names; null: the pieces get one of their own. The caller's hold of the queue, and its waits, are
// the pieces' then. 0: nothing was done, because the graph is not to be cut, or because slots are
// missing.
TicketId SubmitPieces(Flow& flow, Queue& queue, const TaskSpec& spec, const KernelDesc* graph,
                      QuerySlot* query);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_ENTRY_PIECES_H_
