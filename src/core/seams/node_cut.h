// A graph of LC work cut at kernel nodes, so that policies that fuse two kernels find one in it.
//
//   graph part, kernel node, graph part, kernel node ...   each a task of one query, in this order
//
// A cut delays its query: the GPU waits for the next launch, and behind a fused launch the host has
// to see the end first. So a node is cut out only where some fused kernel of its kernel saves more
// BE time than a cut costs (LeastNodeNs), and a query is cut only while BE work is there with which
// it does (GraphPiece, LcRoute::cuts_graphs). Pure; threads: any.

#ifndef GPUSHARE_SRC_CORE_SEAMS_NODE_CUT_H_
#define GPUSHARE_SRC_CORE_SEAMS_NODE_CUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

// A registered kernel at whose nodes a graph may be cut.
struct NodeKernel {
  KernelId id;
  std::string name;
  int64_t least_ns = 0;  // shorter nodes stay in their graph
};

// One piece of a cut graph. `part`: of a part of the graph, the kernel to register. `code`: what
// the part's code names, until the device has prepared it.
struct NodePiece {
  GraphPiece piece;
  std::optional<KernelDesc> part;
  std::shared_ptr<void> code;
};

// From which duration on a node, one part of the fused kernel, gains what a cut costs
// (DeviceProfile::cut_node_ns): beside its opportune partner both take opportune_duration_ratio
// instead of 1 + opportune_load_ratio. kNever: the fused kernel saves nothing.
int64_t LeastNodeNs(const FusedKernelDesc& fused, bool node_is_tensor, int64_t cut_node_ns);

// Adds what the fused kernel says of the kernel with this id and name.
void AddNodeKernel(const FusedKernelDesc& fused, KernelId id, const std::string& name,
                   int64_t cut_node_ns, std::vector<NodeKernel>& kernels);

// The longest kMaxCutNodes nodes of those whose kernel and duration allow a cut, by position and
// ascending. `kernels` by node: null: none.
std::vector<size_t> ChooseNodes(absl::Span<const int64_t> durations_ns,
                                absl::Span<const NodeKernel* const> kernels);

// The pieces of a device that runs the kernel, which is a graph, by its simulation record.
std::vector<NodePiece> PiecesOfRecord(const KernelDesc& graph,
                                      absl::Span<const NodeKernel> kernels);

// What a part of the graph is registered as, without code of its own: nodes [begin, end).
KernelDesc PartOf(const KernelDesc& graph, size_t begin, size_t end);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_NODE_CUT_H_
