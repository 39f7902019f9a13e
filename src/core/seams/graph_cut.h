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

struct RecordCut {
  std::vector<int64_t> begins;        // the first node of each segment; at most kMaxSegments
  std::vector<int64_t> durations_ns;  // of each, alone on the whole device
};

// Empty for a record without nodes.
RecordCut CutRecord(const SimulationRecord& record, int64_t segment_ns);

// The cut of a device that runs the kernel, which is a graph, by its simulation record.
GraphCut CutOfRecord(const KernelDesc& graph);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_GRAPH_CUT_H_
