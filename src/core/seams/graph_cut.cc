// Cuts simulation records into segments. See graph_cut.h.

#include "src/core/seams/graph_cut.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

// In floating point: 4,096 nodes of an hour, each repeated a million times, exceed 64 bits.
double ChainNs(const SimulationRecord& record) {
  double sum_ns = 0;
  for (const GraphNode& node : record.nodes) {
    sum_ns += static_cast<double>(node.duration_ns + record.node_gap_ns) * node.repeat;
  }
  return sum_ns;
}

}  // namespace

int64_t SegmentNsOf(const KernelDesc& graph) {
  const GraphCode* const code = graph.graph();
  return code != nullptr && code->segment_ns > 0 ? code->segment_ns : kSegmentNs;
}

std::string WholeReasonOf(const KernelDesc& graph) {
  if (graph.graph()->segment_ns < 0)
    return "The kernel option segment_ns asks for the whole graph.";
  return "";
}

RecordCut CutRecord(const SimulationRecord& record, int64_t segment_ns) {
  // Two neighbouring segments are longer than one may be, so half the bound is enough.
  const double least_ns = ChainNs(record) * 2.0 / kMaxSegments;
  segment_ns = std::max(segment_ns, static_cast<int64_t>(std::min(least_ns, 9e18)));
  RecordCut cut;
  int64_t index = 0;
  int64_t length_ns = 0;  // of the open segment, with the gap behind its last node
  for (const GraphNode& node : record.nodes) {
    const int64_t step_ns = std::max<int64_t>(1, node.duration_ns + record.node_gap_ns);
    for (int64_t left = node.repeat; left > 0;) {
      // The gap behind a segment's last node does not count.
      int64_t fit = (segment_ns + record.node_gap_ns - length_ns) / step_ns;
      if (length_ns == 0) fit = std::max<int64_t>(1, fit);
      if (fit <= 0) {
        length_ns = 0;
        continue;
      }
      if (length_ns == 0) {
        cut.begins.push_back(index);
        cut.durations_ns.push_back(0);
        const bool evictable = IsEvictableNode(node.duration_ns, node.block_task_ns, segment_ns);
        cut.block_tasks_ns.push_back(evictable ? node.block_task_ns : 0);
      }
      const int64_t taken = std::min(fit, left);
      index += taken;
      left -= taken;
      length_ns += taken * step_ns;
      cut.durations_ns.back() = length_ns - record.node_gap_ns;
    }
  }
  return cut;
}

GraphCut CutOfRecord(const KernelDesc& graph) {
  if (std::string reason = WholeReasonOf(graph); !reason.empty()) {
    return {.segments = 1, .whole_reason = std::move(reason)};
  }
  const RecordCut cut = CutRecord(graph.simulation, SegmentNsOf(graph));
  if (cut.begins.empty()) return {.segments = 1, .whole_reason = "The graph has no nodes."};
  const int64_t longest_ns = *std::max_element(cut.durations_ns.begin(), cut.durations_ns.end());
  if (cut.begins.size() == 1) {
    return {.segments = 1,
            .longest_ns = longest_ns,
            .whole_reason = absl::StrCat("The graph takes ", longest_ns, " ns, and a segment has ",
                                         SegmentNsOf(graph), " ns.")};
  }
  GraphCut known{.segments = static_cast<int32_t>(cut.begins.size()), .longest_ns = longest_ns};
  if (!graph.graph()->measure_nodes) return known;
  known.blocking = SegmentBlocking(cut.durations_ns, SegmentNsOf(graph), cut.block_tasks_ns);
  known.evictable_segments =
      static_cast<int32_t>(cut.block_tasks_ns.size()) -
      static_cast<int32_t>(std::count(cut.block_tasks_ns.begin(), cut.block_tasks_ns.end(), 0));
  return known;
}

}  // namespace gpushare::core
