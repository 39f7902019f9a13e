// Cuts graphs at kernel nodes. See node_cut.h.

#include "src/core/seams/node_cut.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/digest.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

const NodeKernel* Find(absl::Span<const NodeKernel> kernels, const std::string& name) {
  if (name.empty()) return nullptr;
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const NodeKernel& kernel) { return kernel.name == name; });
  return found == kernels.end() ? nullptr : &*found;
}

// The record's nodes, repeats one by one.
std::vector<const GraphNode*> NodesOf(const SimulationRecord& record) {
  std::vector<const GraphNode*> nodes;
  for (const GraphNode& node : record.nodes) nodes.insert(nodes.end(), node.repeat, &node);
  return nodes;
}

int64_t NodeCount(const SimulationRecord& record) {
  int64_t count = 0;
  for (const GraphNode& node : record.nodes) count += node.repeat;
  return count;
}

int64_t ChainNs(absl::Span<const GraphNode* const> nodes, int64_t gap_ns) {
  int64_t sum_ns = gap_ns * (static_cast<int64_t>(nodes.size()) - 1);
  for (const GraphNode* node : nodes) sum_ns += node->duration_ns;
  return sum_ns;
}

// Names tell the model which kernel learned what, so two graphs have no part of the same name. A
// name that is cut short has its digest instead.
std::string PartName(const std::string& graph, size_t begin, size_t end) {
  constexpr size_t kLength = kMaxNameBytes - 1;
  std::string which = absl::StrCat(", nodes ", begin, " to ", end - 1);
  if (graph.size() + which.size() <= kLength) return absl::StrCat(graph, which);
  const uint64_t digest = Fnv1a(kEmptyDigest, graph);
  which = absl::StrCat("~", absl::Hex(digest, absl::kZeroPad16), which);
  return absl::StrCat(graph.substr(0, kLength - which.size()), which);
}

}  // namespace

int64_t LeastNodeNs(const FusedKernelDesc& fused, bool node_is_tensor, int64_t cut_node_ns) {
  const double saved = 1 + fused.opportune_load_ratio - fused.opportune_duration_ratio;
  if (!(saved > 0) || !(fused.opportune_load_ratio > 0)) return kNever;
  // Both ratios count in the Tensor-core part's time.
  const double of_node = node_is_tensor ? saved : saved / fused.opportune_load_ratio;
  const double least_ns = std::ceil(static_cast<double>(cut_node_ns) / of_node);
  return least_ns < static_cast<double>(kMaxDurationNs) ? static_cast<int64_t>(least_ns) : kNever;
}

void AddNodeKernel(const FusedKernelDesc& fused, KernelId id, const std::string& name,
                   int64_t cut_node_ns, std::vector<NodeKernel>& kernels) {
  int64_t least_ns = kNever;
  for (const bool tensor : {true, false}) {
    if ((tensor ? fused.tensor_part : fused.cuda_part) != id) continue;
    least_ns = std::min(least_ns, LeastNodeNs(fused, tensor, cut_node_ns));
  }
  if (least_ns == kNever) return;
  for (NodeKernel& known : kernels) {
    if (known.id != id) continue;
    known.least_ns = std::min(known.least_ns, least_ns);
    return;
  }
  kernels.push_back({id, name, least_ns});
}

std::vector<size_t> ChooseNodes(absl::Span<const int64_t> durations_ns,
                                absl::Span<const NodeKernel* const> kernels) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i] != nullptr && durations_ns[i] >= kernels[i]->least_ns) chosen.push_back(i);
  }
  if (chosen.size() <= kMaxCutNodes) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](size_t a, size_t b) { return durations_ns[a] > durations_ns[b]; });
  chosen.resize(kMaxCutNodes);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

KernelDesc PartOf(const KernelDesc& graph, size_t begin, size_t end) {
  KernelDesc part;
  part.name = PartName(graph.name, begin, end);
  part.code = GraphCode{.segment_ns = -1};
  part.confinable = graph.confinable;
  part.simulation = graph.simulation;
  part.simulation.nodes.clear();
  return part;
}

std::vector<NodePiece> PiecesOfRecord(const KernelDesc& graph,
                                      absl::Span<const NodeKernel> kernels) {
  std::vector<NodePiece> pieces;
  if (kernels.empty() || NodeCount(graph.simulation) > kMaxGraphNodes) return pieces;
  const std::vector<const GraphNode*> nodes = NodesOf(graph.simulation);
  std::vector<int64_t> durations_ns;
  std::vector<const NodeKernel*> kernel_of;
  for (const GraphNode* node : nodes) {
    durations_ns.push_back(node->duration_ns);
    kernel_of.push_back(Find(kernels, node->kernel));
  }
  const std::vector<size_t> chosen = ChooseNodes(durations_ns, kernel_of);
  if (chosen.empty()) return pieces;
  const auto add_part = [&](size_t begin, size_t end) {
    if (begin == end) return;
    const auto between = absl::MakeConstSpan(nodes).subspan(begin, end - begin);
    NodePiece& added = pieces.emplace_back();
    added.piece.solo_ns = ChainNs(between, graph.simulation.node_gap_ns);
    added.part = PartOf(graph, begin, end);
    std::vector<GraphNode>& of_part = added.part->simulation.nodes;
    const GraphNode* last = nullptr;
    for (const GraphNode* node : between) {
      if (node == last) {
        ++of_part.back().repeat;
        continue;
      }
      of_part.push_back(*node);
      of_part.back().repeat = 1;
      last = node;
    }
  };
  size_t begin = 0;
  for (const size_t node : chosen) {
    add_part(begin, node);
    NodePiece& added = pieces.emplace_back();
    added.piece = {.kernel = kernel_of[node]->id,
                   .is_node = true,
                   .solo_ns = durations_ns[node],
                   .block_tasks = std::max(1, nodes[node]->blocks)};
    begin = node + 1;
  }
  add_part(begin, nodes.size());
  return pieces;
}

}  // namespace gpushare::core
