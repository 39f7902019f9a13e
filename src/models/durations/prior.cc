// Priors of durations; see prior.h.

#include "src/models/durations/prior.h"

#include <algorithm>

namespace gpushare::models {
namespace {

using core::CopyDirection;

// Nodes follow one another with a gap between each two.
double GraphPriorNs(const core::SimulationRecord& record) {
  double total = 0;
  int64_t nodes = 0;
  for (const core::GraphNode& node : record.nodes) {
    total += static_cast<double>(node.duration_ns) * node.repeat;
    nodes += node.repeat;
  }
  return total + static_cast<double>(record.node_gap_ns) * static_cast<double>(nodes - 1);
}

}  // namespace

double CountedNsPerBlockTask(const core::DeviceProfile& device,
                             const core::KernelCounters& counters) {
  constexpr double kSchedulersPerSm = 4;
  const double cycles_per_ns = 1e-3 * device.clock_mhz;
  const double rate = device.sm_count * kSchedulersPerSm * cycles_per_ns * counters.issue;
  return rate > 0 ? counters.instructions / rate : 0;
}

KernelPrior::KernelPrior(const core::DeviceProfile& device, const core::KernelDesc& kernel) {
  const core::SimulationRecord& record = kernel.simulation;
  if (record.present && !record.nodes.empty()) {
    constant_ns_ = GraphPriorNs(record);
  } else if (record.present && record.block_task_ns > 0) {
    block_task_ns_ = static_cast<double>(record.block_task_ns);
    concurrent_ = std::max<int64_t>(
        1, static_cast<int64_t>(device.sm_count) * kernel.resources.workers_per_sm_max);
  } else {
    const auto hint = static_cast<double>(kernel.solo_hint_ns);
    if (hint <= 0 && kernel.kind() == core::TaskKind::kKernel) {
      counted_ns_per_block_task_ = CountedNsPerBlockTask(device, kernel.counters);
    }
    known_ = hint > 0 || counted_ns_per_block_task_ > 0;
    constant_ns_ = hint > 0 ? hint : kUnknownDurationNs;
    const core::LibraryCall* const call = kernel.library_call();
    open_for_call_ =
        hint <= 0 && call != nullptr && call->operation != core::LibraryOperation::kNone;
  }
}

void KernelPrior::SetCall(const core::Prediction& predicted) {
  if (predicted.duration_ns <= 0) return;
  constant_ns_ = static_cast<double>(predicted.duration_ns);
  error_ = static_cast<double>(predicted.error_ns) / constant_ns_;
  known_ = predicted.trained;
}

double KernelPrior::NsOf(int64_t block_tasks) const {
  const int64_t tasks = std::max<int64_t>(1, block_tasks);
  if (counted_ns_per_block_task_ > 0) {
    return counted_ns_per_block_task_ * static_cast<double>(tasks);
  }
  if (block_task_ns_ <= 0) return constant_ns_;
  const int64_t rounds = (tasks - 1) / concurrent_ + 1;
  return block_task_ns_ * static_cast<double>(rounds);
}

double CopyPriorNs(const core::DeviceProfile& device, CopyDirection direction, bool pinned,
                   double bytes) {
  double rate = device.pinned_bytes_per_ns;
  if (!pinned && direction == CopyDirection::kHostToDevice) rate = device.pageable_h2d_bytes_per_ns;
  if (!pinned && direction == CopyDirection::kDeviceToHost) rate = device.pageable_d2h_bytes_per_ns;
  return static_cast<double>(device.copy_latency_ns) + bytes / rate;
}

}  // namespace gpushare::models
