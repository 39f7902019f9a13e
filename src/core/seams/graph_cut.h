// Where a graph that comes as a simulation record is cut into segments.
//
// A segment is as long as the kernel's segment_ns, or one node. The cut is greedy along the
// record's order, so two neighbours are together longer than one segment may be. Pure; threads:
// any.

#ifndef GPUSHARE_SRC_CORE_SEAMS_GRAPH_CUT_H_
#define GPUSHARE_SRC_CORE_SEAMS_GRAPH_CUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/seams/kernel.h"

namespace gpushare::core {

// The length of the graph's segments: its option, or kSegmentNs.
int64_t SegmentNsOf(const KernelDesc& graph);

// Why no device cuts the kernel, which is a graph; empty: its nodes decide.
std::string WholeReasonOf(const KernelDesc& graph);

// Whether a node of a measured graph is evicted between its block tasks, where it has a twin: it
// would be a segment of its own that is too long, and leaves sooner than it ends.
constexpr bool IsEvictableNode(int64_t duration_ns, int64_t block_task_ns, int64_t segment_ns) {
  return block_task_ns > 0 && duration_ns > segment_ns && block_task_ns <= duration_ns / 2;
}

struct RecordCut {
  std::vector<int64_t> begins;        // the first node of each segment; at most kMaxSegments
  std::vector<int64_t> durations_ns;  // of each, alone on the whole device
  // One block task of each segment whose node IsEvictableNode; 0: it runs to its end.
  std::vector<int64_t> block_tasks_ns;
};

// Empty for a record without nodes.
RecordCut CutRecord(const SimulationRecord& record, int64_t segment_ns);

// The cut of a device that runs the kernel, which is a graph, by its simulation record.
GraphCut CutOfRecord(const KernelDesc& graph);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_GRAPH_CUT_H_
