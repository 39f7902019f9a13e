// A graph cut into segments: contiguous parts of one topological order, each a graph of its own.
//
// The order is that of creation wherever the edges allow it, so every place gets the same cut. A
// cut turns the edges across it into the order of the stream, which is the stronger of the two.
// Branches inside a segment stay. A programmatic edge becomes a full one: the follower does not
// start early (docs/segments.md says why). Kernels, copies, fills, empty nodes and child graphs of
// these can be cut around, where a copy of the node is the same node.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_SEGMENTS_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_SEGMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/graphs/graph_binder.h"
#include "src/cuda/graphs/graph_handle.h"

namespace gpushare::cuda {

// Instances of segments, and of groups of them, on one device, about 160 KB of device memory each
// (docs/segments.md): 5.2 GB.
inline constexpr size_t kMaxSegmentInstances = 32'768;

// The room for one more graph in segments.
struct SegmentRoom {
  size_t places = 1;  // each has an instance of each segment
  size_t used = 0;    // instances of the other graphs

  size_t Left() const { return kMaxSegmentInstances - std::min(used, kMaxSegmentInstances); }
  // A graph takes at most half of what is left, so that the next one still has room.
  size_t SegmentsMax() const;
};

struct SegmentedGraph {
  struct Edge {
    size_t from = 0;  // positions in `nodes`
    size_t to = 0;
  };
  std::vector<CUgraphNode> nodes;     // in topological order; of the graph that was cut
  std::vector<Edge> edges;            // ascending by `from`
  std::vector<size_t> begins;         // the first node of each segment; one: it runs whole
  std::vector<int64_t> durations_ns;  // of each segment alone; empty: nobody measured them
  int64_t mean_ns = 0;                // where nobody did, what one takes by the graph's duration
  bool programmatic = false;          // an edge of it was programmatic
  std::string whole_reason;           // why the graph is not cut; empty if it is

  size_t EndOf(size_t segment) const {
    return segment + 1 < begins.size() ? begins[segment + 1] : nodes.size();
  }
};

// Measures the duration of each node, in ns, in the order of the nodes (node_times.h).
using NodeTimer =
    std::function<absl::StatusOr<std::vector<int64_t>>(const std::vector<CUgraphNode>&)>;

// Cuts the graph. With measure_nodes, each segment takes nodes until `timer`'s durations fill
// segment_ns. Otherwise segments have equal numbers of nodes, at least one: as many as fit into
// segment_ns at the mean duration of the graph's nodes, or at kGraphNodeNs a node if the graph's
// duration is unknown. Segments are longer if the room is small. `functions`: as GraphBinder's.
absl::StatusOr<SegmentedGraph> CutGraph(const DriverApi& api, CUgraph graph,
                                        const core::KernelDesc& kernel, const SegmentRoom& room,
                                        const NodeTimer& timer,
                                        FunctionKernels* functions = nullptr);

// The graph's nodes in the order of a cut, with their edges, uncut: `begins` is empty.
// `whole_reason` says why it cannot be cut. `functions`: as GraphBinder's.
absl::StatusOr<SegmentedGraph> SortGraph(const DriverApi& api, CUgraph graph, bool confinable,
                                         FunctionKernels* functions = nullptr);

// Adds a copy of the node to another graph, for the binder's place and without edges.
absl::Status AddNodeCopy(const DriverApi& api, CUgraph graph, CUgraphNode node, GraphBinder& binder,
                         CUgraphNode& added);

// A new graph of the segments from `begin` to before `end` for the binder's place.
absl::StatusOr<GraphHandle> BuildSegments(const DriverApi& api, const SegmentedGraph& graph,
                                          size_t begin, size_t end, GraphBinder& binder);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_GRAPH_SEGMENTS_H_
