// Cuts graphs and builds their segments. See graph_segments.h.

#include "src/cuda/graphs/graph_segments.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/seams/graph_cut.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// Mean duration of a node of a whole training step, ns: 8,300 and 10,100 (docs/hardware.md). Range
// 2,000 to 50,000.
constexpr int64_t kGraphNodeNs = 9000;

const char* NameOf(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_HOST:
      return "a host function";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "a conditional node";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "a memory allocation";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "an event";
    default:
      return "a node that gpushare does not cut around";
  }
}

absl::StatusOr<std::vector<CUgraphNode>> NodesOf(const DriverApi& api, CUgraph graph) {
  size_t count = 0;
  GPUSHARE_CU_RETURN(api, cuGraphGetNodes(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  GPUSHARE_CU_RETURN(api, cuGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

// Why the graph must run whole: the first of the nodes that cannot be copied. Empty if all can be.
absl::StatusOr<std::string> WholeReasonOf(const DriverApi& api,
                                          const std::vector<CUgraphNode>& nodes, bool confinable,
                                          FunctionKernels* functions, int depth) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    GPUSHARE_CU_RETURN(api, cuGraphNodeGetType(nodes[i], &type));
    switch (type) {
      case CU_GRAPH_NODE_TYPE_MEMCPY:
      case CU_GRAPH_NODE_TYPE_MEMSET:
      case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS params = {};
        GPUSHARE_CU_RETURN(api, cuGraphKernelNodeGetParams(nodes[i], &params));
        if (params.kern == nullptr && confinable &&
            (functions == nullptr || functions->KernelOf(params.func) == nullptr)) {
          return absl::StrCat("The kernel of node ", i, " is bound to its context",
                              functions == nullptr ? " (a CUfunction of a module)"
                                                   : absl::StrCat(": ", functions->WhyNot()),
                              ".");
        }
        const char* const lost = NodeAttributes::LostByCopy(api, nodes[i]);
        if (lost == nullptr) break;
        return absl::StrCat("The kernel of node ", i, " ", lost,
                            ", which a copy of the node would lose.");
      }
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        CUgraph child = nullptr;
        GPUSHARE_CU_RETURN(api, cuGraphChildGraphNodeGetGraph(nodes[i], &child));
        if (depth == kGraphDepthMax) {
          return absl::StrCat("Its child graphs are more than ", kGraphDepthMax, " deep.");
        }
        absl::StatusOr<std::vector<CUgraphNode>> inner = NodesOf(api, child);
        if (!inner.ok()) return inner.status();
        absl::StatusOr<std::string> reason =
            WholeReasonOf(api, *inner, confinable, functions, depth + 1);
        if (!reason.ok() || !reason->empty()) return reason;
        break;
      }
      default:
        return absl::StrCat("Node ", i, " is ", NameOf(type), ".");
    }
  }
  return std::string();
}

struct Edges {
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
  bool programmatic = false;  // one of them is
};

absl::StatusOr<Edges> EdgesOf(const DriverApi& api, CUgraph graph) {
  size_t count = 0;
  GPUSHARE_CU_RETURN(api, cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  Edges edges{std::vector<CUgraphNode>(count), std::vector<CUgraphNode>(count), false};
  if (count == 0) return edges;
  // The driver refuses to list programmatic edges without their data.
  std::vector<CUgraphEdgeData> data(count);
  GPUSHARE_CU_RETURN(
      api, cuGraphGetEdges(graph, edges.from.data(), edges.to.data(), data.data(), &count));
  edges.programmatic = std::any_of(data.begin(), data.end(), [](const CUgraphEdgeData& edge) {
    return edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  });
  return edges;
}

// Sorts the nodes topologically. Of the nodes that may come next, the one that was created first
// comes. Returns the edges between positions in that order, by where they begin.
std::vector<SegmentedGraph::Edge> Sort(const Edges& edges, std::vector<CUgraphNode>& nodes) {
  std::unordered_map<CUgraphNode, size_t> created;
  for (size_t i = 0; i < nodes.size(); ++i) created[nodes[i]] = i;
  std::vector<std::vector<size_t>> followers(nodes.size());
  std::vector<size_t> waits(nodes.size(), 0);
  for (size_t e = 0; e < edges.from.size(); ++e) {
    followers[created[edges.from[e]]].push_back(created[edges.to[e]]);
    ++waits[created[edges.to[e]]];
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits[i] == 0) ready.push(i);
  }
  std::vector<CUgraphNode> sorted;
  std::vector<size_t> position(nodes.size(), 0);
  for (; !ready.empty();) {
    const size_t next = ready.top();
    ready.pop();
    position[next] = sorted.size();
    sorted.push_back(nodes[next]);
    for (const size_t follower : followers[next]) {
      if (--waits[follower] == 0) ready.push(follower);
    }
  }
  std::vector<SegmentedGraph::Edge> by_position;
  for (size_t e = 0; e < edges.from.size(); ++e) {
    by_position.push_back({position[created[edges.from[e]]], position[created[edges.to[e]]]});
  }
  std::sort(by_position.begin(), by_position.end(),
            [](const SegmentedGraph::Edge& a, const SegmentedGraph::Edge& b) {
              return std::tie(a.from, a.to) < std::tie(b.from, b.to);
            });
  nodes = std::move(sorted);
  return by_position;
}

// The duration of the whole graph in ns; 0 if it is not known. In floating point, because the sum
// of a simulation record may exceed 64 bits.
double DurationOf(const core::KernelDesc& kernel) {
  if (kernel.solo_hint_ns > 0) return static_cast<double>(kernel.solo_hint_ns);
  double sum_ns = 0;
  for (const core::GraphNode& node : kernel.simulation.nodes) {
    sum_ns += static_cast<double>(node.duration_ns + kernel.simulation.node_gap_ns) * node.repeat;
  }
  return sum_ns;
}

void CutByCount(const core::KernelDesc& kernel, size_t segments_max, SegmentedGraph& out) {
  const auto nodes = static_cast<double>(out.nodes.size());
  const double known_ns = DurationOf(kernel);
  const double graph_ns =
      std::max(1.0, known_ns > 0 ? known_ns : static_cast<double>(kGraphNodeNs) * nodes);
  // Multiplies before it divides: then the quotient of whole numbers is exact if it is whole.
  const double fit = static_cast<double>(core::SegmentNsOf(kernel)) * nodes / graph_ns;
  const size_t least = (out.nodes.size() + segments_max - 1) / segments_max;
  const size_t each = std::max({size_t{1}, least, static_cast<size_t>(std::min(fit, 1e9))});
  for (size_t begin = 0; begin < out.nodes.size(); begin += each) out.begins.push_back(begin);
  const double mean_ns = graph_ns / nodes * static_cast<double>(each);
  out.mean_ns = static_cast<int64_t>(std::min(mean_ns, static_cast<double>(core::kMaxDurationNs)));
}

void CutByTime(const std::vector<int64_t>& times_ns, int64_t segment_ns, size_t segments_max,
               SegmentedGraph& out) {
  // Two neighbouring segments together are longer than segment_ns. So at twice the mean duration of
  // segments_max segments, at most segments_max segments result.
  const int64_t sum_ns = std::accumulate(times_ns.begin(), times_ns.end(), int64_t{0});
  segment_ns = std::max(segment_ns, 2 * sum_ns / static_cast<int64_t>(segments_max) + 1);
  for (size_t i = 0; i < times_ns.size(); ++i) {
    if (out.begins.empty() || out.durations_ns.back() + times_ns[i] > segment_ns) {
      out.begins.push_back(i);
      out.durations_ns.push_back(0);
    }
    out.durations_ns.back() += times_ns[i];
  }
}

// Adds the nodes from `begin` to before `end`, and the edges between two of them.
absl::Status AddNodes(const DriverApi& api, const SegmentedGraph& graph, size_t begin, size_t end,
                      GraphBinder& binder, CUgraph target) {
  std::vector<CUgraphNode> added(end - begin);
  for (size_t i = 0; i < added.size(); ++i) {
    absl::Status status = AddNodeCopy(api, target, graph.nodes[begin + i], binder, added[i]);
    if (!status.ok()) return status;
  }
  Edges edges;
  auto edge = std::lower_bound(
      graph.edges.begin(), graph.edges.end(), begin,
      [](const SegmentedGraph::Edge& one, size_t node) { return one.from < node; });
  for (; edge != graph.edges.end() && edge->from < end; ++edge) {
    if (edge->to >= end) continue;  // the order of the stream is enough
    edges.from.push_back(added[edge->from - begin]);
    edges.to.push_back(added[edge->to - begin]);
  }
  if (edges.from.empty()) return absl::OkStatus();
  const std::vector<CUgraphEdgeData> full(edges.from.size());
  return GPUSHARE_CU(api, cuGraphAddDependencies(target, edges.from.data(), edges.to.data(),
                                                 full.data(), full.size()));
}

}  // namespace

absl::Status AddNodeCopy(const DriverApi& api, CUgraph graph, CUgraphNode node, GraphBinder& binder,
                         CUgraphNode& added) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  GPUSHARE_CU_RETURN(api, cuGraphNodeGetType(node, &type));
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS params = {};
      GPUSHARE_CU_RETURN(api, cuGraphKernelNodeGetParams(node, &params));
      absl::StatusOr<bool> bound = binder.BindParams(params);
      if (!bound.ok()) return bound.status();
      if (!*bound) return absl::InternalError("A kernel of a segment is bound to its context.");
      GPUSHARE_CU_RETURN(api, cuGraphAddKernelNode(&added, graph, nullptr, 0, &params));
      return NodeAttributes::Of(api, node).Set(api, added);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D params = {};
      GPUSHARE_CU_RETURN(api, cuGraphMemcpyNodeGetParams(node, &params));
      return GPUSHARE_CU(api,
                         cuGraphAddMemcpyNode(&added, graph, nullptr, 0, &params, binder.target()));
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS params = {};
      GPUSHARE_CU_RETURN(api, cuGraphMemsetNodeGetParams(node, &params));
      return GPUSHARE_CU(api,
                         cuGraphAddMemsetNode(&added, graph, nullptr, 0, &params, binder.target()));
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      CUgraph copy = nullptr;
      GPUSHARE_CU_RETURN(api, cuGraphChildGraphNodeGetGraph(node, &child));
      GPUSHARE_CU_RETURN(api, cuGraphClone(&copy, child));
      const GraphHandle clone(copy, {&api});
      const absl::StatusOr<bool> bound = binder.BindGraph(clone.get());
      if (!bound.ok()) return bound.status();
      if (!*bound) {
        return absl::InternalError("A child graph of a segment is bound to its context.");
      }
      return GPUSHARE_CU(api, cuGraphAddChildGraphNode(&added, graph, nullptr, 0, clone.get()));
    }
    default:
      return GPUSHARE_CU(api, cuGraphAddEmptyNode(&added, graph, nullptr, 0));
  }
}

size_t SegmentRoom::SegmentsMax() const {
  return std::min(size_t{core::kMaxSegments}, Left() / 2 / places);
}

absl::StatusOr<SegmentedGraph> SortGraph(const DriverApi& api, CUgraph graph, bool confinable,
                                         FunctionKernels* functions) {
  SegmentedGraph out;
  absl::StatusOr<std::vector<CUgraphNode>> nodes = NodesOf(api, graph);
  if (!nodes.ok()) return nodes.status();
  out.nodes = *std::move(nodes);
  absl::StatusOr<std::string> reason = WholeReasonOf(api, out.nodes, confinable, functions, 0);
  if (!reason.ok()) return reason.status();
  out.whole_reason = *std::move(reason);
  if (!out.whole_reason.empty()) return out;
  absl::StatusOr<Edges> edges = EdgesOf(api, graph);
  if (!edges.ok()) return edges.status();
  out.edges = Sort(*edges, out.nodes);
  out.programmatic = edges->programmatic;
  return out;
}

absl::StatusOr<SegmentedGraph> CutGraph(const DriverApi& api, CUgraph graph,
                                        const core::KernelDesc& kernel, const SegmentRoom& room,
                                        const NodeTimer& timer, FunctionKernels* functions) {
  SegmentedGraph out;
  out.whole_reason = core::WholeReasonOf(kernel);
  if (!out.whole_reason.empty()) return out;
  absl::StatusOr<SegmentedGraph> sorted = SortGraph(api, graph, kernel.confinable, functions);
  if (!sorted.ok()) return sorted.status();
  out = *std::move(sorted);
  const size_t segments_max = room.SegmentsMax();
  if (out.whole_reason.empty() && segments_max < 2) {
    out.whole_reason = absl::StrCat(
        "Two segments in ", room.places, " places take more than half of the ", room.Left(),
        " instances of segments that are left of the device's ", kMaxSegmentInstances, ".");
  }
  if (!out.whole_reason.empty()) return out;
  if (kernel.graph()->measure_nodes && out.nodes.size() > 1) {
    absl::StatusOr<std::vector<int64_t>> times_ns = timer(out.nodes);
    if (!times_ns.ok()) return times_ns.status();
    CutByTime(*times_ns, core::SegmentNsOf(kernel), segments_max, out);
  } else {
    CutByCount(kernel, segments_max, out);
  }
  if (out.begins.size() < 2) {
    out.whole_reason = absl::StrCat("All ", out.nodes.size(), " nodes fit into a segment.");
    out.begins.clear();
    out.durations_ns.clear();
    out.edges.clear();
  }
  return out;
}

absl::StatusOr<GraphHandle> BuildSegments(const DriverApi& api, const SegmentedGraph& graph,
                                          size_t begin, size_t end, GraphBinder& binder) {
  CUgraph made = nullptr;
  GPUSHARE_CU_RETURN(api, cuGraphCreate(&made, 0));
  GraphHandle target(made, {&api});
  absl::Status status =
      AddNodes(api, graph, graph.begins[begin], graph.EndOf(end - 1), binder, made);
  if (!status.ok()) return status;
  return target;
}

}  // namespace gpushare::cuda
