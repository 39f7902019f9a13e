// A kernel as the simulated device runs it: its description and numbers derived from it.
//
// PrepareKernel makes it, and it never changes afterwards. So a launch derives nothing and
// allocates nothing.

#ifndef GPUSHARE_SRC_SIM_PREPARED_KERNEL_H_
#define GPUSHARE_SRC_SIM_PREPARED_KERNEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/segment_lengths.h"
#include "src/sim/sm_state.h"

namespace gpushare::sim {

// A run of equal consecutive nodes of a graph.
struct NodeRun {
  core::GraphNode node;
  BlockNeeds needs;
  double begin_ns = 0;  // start of the first node, alone on the whole device
  int64_t first = 0;    // index of the first node in the chain
};

// The position of a node in the chain.
struct NodePosition {
  const NodeRun* run = nullptr;
  int64_t index = 0;
  double begin_ns = 0;
};

struct PreparedKernel {
  core::KernelDesc desc;
  BlockNeeds needs;
  int32_t workers_per_sm = 1;  // M: the smaller of the kernel's own bound and what an SM holds
  double sm_ns_per_task = 0;   // time per block task of a full SM, original grid
  bool counted = false;        // `pipes` holds counters of a GPU
  core::ResourceDemand pipes;  // of one SM: issue, tensor, special

  // For chains: graphs and library calls. A library call is a chain of one node.
  std::vector<NodeRun> runs;
  int64_t nodes = 0;
  std::vector<int64_t> segments;  // the first node of each; empty where the graph is not cut
  std::vector<int64_t> segment_times_ns;  // alone; empty: the graph was not measured
  // One block task of each segment that is evicted between them, else 0; empty: none is.
  std::vector<int64_t> segment_block_tasks_ns;
  int64_t longest_segment_ns = 0;
  std::vector<core::LongerCut> longer_cuts;
  double gap_ns = 0;
  double chain_ns = 0;          // alone on the whole device
  core::ResourceDemand demand;  // of the chain, mean over its duration
  double busy_share = 1;  // share of the device's SMs that its nodes use, mean over its duration

  bool is_chain() const { return !runs.empty(); }
  // Speed on `sms` SMs relative to the whole device.
  double SpeedOn(int32_t sms, int32_t device_sms) const;
  NodePosition NodeAt(double time_ns) const;
  NodePosition NodeOf(int64_t index) const;
  // The segment that has the node.
  int64_t SegmentOf(int64_t node) const;
  // The step that has the segment, in a run whose segments may be so long since one of them.
  core::SegmentStep StepOf(size_t segment, size_t since, int64_t longest_ns) const;
  // Whether the step is evicted between the block tasks of its one node.
  bool IsEvictable(const core::SegmentStep& step) const {
    return step.cut == core::SegmentStep::kOwn && step.begin < segment_block_tasks_ns.size() &&
           segment_block_tasks_ns[step.begin] > 0;
  }
  // The first segment behind those that run to their ends if an eviction comes while `segment`
  // runs.
  size_t FirstNotOutstanding(size_t segment, size_t since, int64_t longest_ns) const;
  // How many launches the whole graph takes, if its segments may be so long.
  size_t StepsOf(int64_t longest_ns) const;
  // How many of these launches are evicted between block tasks.
  size_t EvictableStepsOf(int64_t longest_ns) const;
};

// Errors: INVALID_ARGUMENT if no block fits into an SM, or if a number is out of range.
absl::StatusOr<PreparedKernel> PrepareKernelRecord(const core::KernelDesc& desc,
                                                   const core::DeviceProfile& profile,
                                                   const SmState& sms);

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_PREPARED_KERNEL_H_
