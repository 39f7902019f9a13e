// Cuts graphs of LC work at kernel nodes. See node_pieces.h.

#include "src/cuda/graphs/node_pieces.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "src/core/base/limits.h"

namespace gpushare::cuda {
namespace {

const core::NodeKernel* Find(absl::Span<const core::NodeKernel> kernels, core::KernelId id) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const core::NodeKernel& kernel) { return kernel.id == id; });
  return found == kernels.end() ? nullptr : &*found;
}

// The node's arguments as a task of its kernel has them: packed as the original's parameters lie.
std::vector<std::byte> Packed(const NodeTwin& node) {
  std::vector<std::byte> packed;
  std::byte origin{};
  ParameterAddresses addresses{};
  node.twin.kernel.original.parameters.Fill(&origin, addresses);
  for (size_t i = 0; i < node.offsets.size(); ++i) {
    const size_t begin = node.offsets[i];
    const size_t end = i + 1 < node.offsets.size() ? node.offsets[i + 1] : node.arguments.size();
    const auto at = static_cast<size_t>(static_cast<std::byte*>(addresses[i]) - &origin);
    packed.resize(std::max(packed.size(), at + end - begin));
    std::memcpy(packed.data() + at, node.arguments.data() + begin, end - begin);
  }
  return packed;
}

core::NodePiece PieceOf(const NodeTwin& node, int64_t duration_ns) {
  core::NodePiece piece;
  piece.piece.kernel = node.twin.id;
  piece.piece.is_node = true;
  piece.piece.solo_ns = duration_ns;
  piece.piece.block_tasks = node.block_tasks;
  for (size_t i = 0; i < node.grid.size(); ++i) {
    piece.piece.grid[i] = static_cast<int32_t>(node.grid[i]);
  }
  piece.piece.arguments = Packed(node);
  return piece;
}

// By node, whether it is ordered with every other one. The nodes are in topological order, so all
// earlier nodes lead to one if each has a follower that is no later than it; and it leads to all
// later ones if each has a node before it that is no earlier.
std::vector<bool> OrderedWithAll(const SegmentedGraph& graph) {
  const size_t count = graph.nodes.size();
  std::vector<size_t> next(count, count);  // the first follower
  std::vector<size_t> last(count, 0);      // 1 + the last node before it; 0: none
  for (const SegmentedGraph::Edge& edge : graph.edges) {
    next[edge.from] = std::min(next[edge.from], edge.to);
    last[edge.to] = std::max(last[edge.to], edge.from + 1);
  }
  std::vector<bool> ordered(count, true);
  size_t furthest = 0;  // of `next` of the nodes before this one
  for (size_t i = 0; i < count; ++i) {
    ordered[i] = furthest <= i;
    furthest = std::max(furthest, next[i]);
  }
  size_t earliest = count;  // of `last` of the nodes behind this one
  for (size_t i = count; i-- > 0;) {
    ordered[i] = ordered[i] && earliest > i;
    earliest = std::min(earliest, last[i]);
  }
  return ordered;
}

// Builds the graphs between the chosen nodes, each of which is a segment of the cut.
class Cutter {
 public:
  Cutter(const DriverApi& api, const core::KernelDesc& graph, const SegmentedGraph& cut,
         absl::Span<const int64_t> durations_ns, GraphBinder& binder)
      : api_(api), graph_(graph), cut_(cut), durations_ns_(durations_ns), binder_(binder) {}

  absl::Status AddPart(size_t segment) {
    absl::StatusOr<GraphHandle> made = BuildSegments(api_, cut_, segment, segment + 1, binder_);
    if (!made.ok()) return made.status();
    const size_t begin = cut_.begins[segment];
    const size_t end = cut_.EndOf(segment);
    core::NodePiece& added = out_.pieces.emplace_back();
    for (size_t i = begin; i < end; ++i) added.piece.solo_ns += durations_ns_[i];
    added.part = core::PartOf(graph_, begin, end);
    // Pieces run on the whole device: no split has fused partners.
    added.part->confinable = false;
    added.part->simulation = {};
    added.part->solo_hint_ns = std::max<int64_t>(1, added.piece.solo_ns);
    core::GraphCode& code = *added.part->graph();
    code.graph = made->get();
    if (begin == 0) code.warm_memory = graph_.graph()->warm_memory;
    out_.parts.push_back(*std::move(made));
    return absl::OkStatus();
  }
  void AddNode(const NodeTwin& node, size_t position) {
    out_.pieces.push_back(PieceOf(node, durations_ns_[position]));
  }
  CutPieces Take() { return std::move(out_); }
  // The device is lost: no call is made to it.
  void Leak() {
    for (GraphHandle& part : out_.parts) static_cast<void>(part.release());
  }

 private:
  const DriverApi& api_;
  const core::KernelDesc& graph_;
  const SegmentedGraph& cut_;
  const absl::Span<const int64_t> durations_ns_;
  GraphBinder& binder_;
  CutPieces out_;
};

}  // namespace

absl::StatusOr<CutPieces> CutAtNodes(const DriverApi& api, const core::KernelDesc& graph,
                                     SegmentedGraph sorted, absl::Span<const int64_t> durations_ns,
                                     absl::Span<const core::NodeKernel> kernels,
                                     TwinOfFunction twin_of, GraphBinder& binder) {
  std::vector<std::unique_ptr<NodeTwin>> launches(sorted.nodes.size());
  std::vector<const core::NodeKernel*> kernel_of(sorted.nodes.size(), nullptr);
  const std::vector<bool> ordered = OrderedWithAll(sorted);
  for (size_t i = 0; i < sorted.nodes.size(); ++i) {
    if (!ordered[i]) continue;
    absl::StatusOr<std::unique_ptr<NodeTwin>> launch =
        FindNodeLaunch(api, sorted.nodes[i], twin_of);
    if (absl::IsDataLoss(launch.status())) return launch.status();
    if (!launch.ok() || *launch == nullptr) continue;  // it stays in its part
    if ((*launch)->arguments.size() > core::kInlineArgumentBytes) continue;
    launches[i] = *std::move(launch);
    kernel_of[i] = Find(kernels, launches[i]->twin.id);
  }
  const std::vector<size_t> chosen = core::ChooseNodes(durations_ns, kernel_of);
  if (chosen.empty()) return CutPieces();
  sorted.begins.clear();
  for (const size_t node : chosen) {
    if (sorted.begins.empty() && node > 0) sorted.begins.push_back(0);
    // Behind another chosen node it begins there already.
    if (sorted.begins.empty() || sorted.begins.back() != node) sorted.begins.push_back(node);
    if (node + 1 < sorted.nodes.size()) sorted.begins.push_back(node + 1);
  }
  Cutter cutter(api, graph, sorted, durations_ns, binder);
  for (size_t segment = 0; segment < sorted.begins.size(); ++segment) {
    const size_t begin = sorted.begins[segment];
    if (std::binary_search(chosen.begin(), chosen.end(), begin)) {
      cutter.AddNode(*launches[begin], begin);
    } else {
      absl::Status status = cutter.AddPart(segment);
      if (absl::IsDataLoss(status)) cutter.Leak();
      if (!status.ok()) return status;
    }
  }
  return cutter.Take();
}

}  // namespace gpushare::cuda
