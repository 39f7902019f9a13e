// The pieces of a graph of LC work that is cut at kernel nodes (src/core/seams/node_cut.h).
//
// Where in the flow: registration, behind that of the graph. A node is cut out if its function is
// the original of a registered kernel of PTX (GPUSHARE_PTX_FORM_GRAPH_NODES) that has a fused
// kernel, and if it takes long enough: the launch of that kernel with the node's arguments is then
// the same work. And it has to be ordered with every other node: a cut puts all nodes in one order,
// so nodes that may run beside it would run before or behind it. What lies between two nodes that
// are cut out becomes a graph of its own, for the whole device.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_NODE_PIECES_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_NODE_PIECES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/seams/node_cut.h"
#include "src/cuda/graphs/graph_binder.h"
#include "src/cuda/graphs/graph_handle.h"
#include "src/cuda/graphs/graph_segments.h"
#include "src/cuda/graphs/node_twins.h"

namespace gpushare::cuda {

struct CutPieces {
  std::vector<core::NodePiece> pieces;
  std::vector<GraphHandle> parts;  // the graphs that the parts name, until these are prepared
};

// `sorted`: the nodes of the graph, uncut. `durations_ns`: of each node alone. Empty if no node is
// worth a cut. Errors: the driver's; after DATA_LOSS no graph is destroyed.
absl::StatusOr<CutPieces> CutAtNodes(const DriverApi& api, const core::KernelDesc& graph,
                                     SegmentedGraph sorted, absl::Span<const int64_t> durations_ns,
                                     absl::Span<const core::NodeKernel> kernels,
                                     TwinOfFunction twin_of, GraphBinder& binder);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_NODE_PIECES_H_
