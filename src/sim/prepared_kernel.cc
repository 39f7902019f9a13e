// Validates a kernel and derives its numbers. See prepared_kernel.h.

#include "src/sim/prepared_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/tuning.h"
#include "src/core/seams/graph_cut.h"
#include "src/sim/physics/tuning.h"

namespace gpushare::sim {
namespace {

absl::Status Bad(const core::KernelDesc& desc, absl::string_view what, double value,
                 absl::string_view limit) {
  return absl::InvalidArgumentError(absl::StrCat("Kernel '", desc.name, "' has ", what, " ", value,
                                                 ", and it must be ", limit, "."));
}

absl::Status CheckRecord(const core::KernelDesc& desc) {
  const core::SimulationRecord& record = desc.simulation;
  auto share = [](double value) { return std::isfinite(value) && value >= 0 && value <= 1; };
  for (double value : {record.demand.issue, record.demand.tensor, record.demand.special,
                       record.demand.dram, record.demand.l2}) {
    if (!share(value)) return Bad(desc, "a resource demand of", value, "between 0 and 1");
  }
  if (!(record.saturating_occupancy > 0 && record.saturating_occupancy <= 1)) {
    return Bad(desc, "a saturating occupancy of", record.saturating_occupancy,
               "above 0, at most 1");
  }
  // Negative if workers are faster than the grid, as measured on an H200 (docs/calibration.md).
  if (!(record.worker_overhead >= core::kMinWorkerOverhead &&
        record.worker_overhead <= core::kMaxWorkerOverhead)) {
    return Bad(
        desc, "a worker overhead of", record.worker_overhead,
        absl::StrCat("between ", core::kMinWorkerOverhead, " and ", core::kMaxWorkerOverhead));
  }
  if (!(record.block_task_spread >= 0 && record.block_task_spread <= 1)) {
    return Bad(desc, "a block-task spread of", record.block_task_spread, "between 0 and 1");
  }
  if (!(record.memory_parallelism >= 0 && record.memory_parallelism <= 1000)) {
    return Bad(desc, "a memory parallelism of", record.memory_parallelism, "between 0 and 1000");
  }
  if (record.block_task_ns < 0 || record.block_task_ns > core::kMaxDurationNs) {
    return Bad(desc, "a block task of ns", static_cast<double>(record.block_task_ns),
               "between 0 and one hour");
  }
  int32_t sms = 0;
  for (const core::SpeedPoint& point : record.speed) {
    if (point.sms <= sms) return Bad(desc, "a speed point at SMs", point.sms, "above the last one");
    if (!(point.speed > 0 && point.speed <= 10)) {
      return Bad(desc, "a speed of", point.speed, "above 0, at most 10");
    }
    sms = point.sms;
  }
  for (const core::GraphNode& node : record.nodes) {
    if (node.duration_ns <= 0 || node.duration_ns > core::kMaxDurationNs) {
      return Bad(desc, "a node of ns", static_cast<double>(node.duration_ns),
                 "above 0, at most one hour");
    }
    if (node.repeat < 1) return Bad(desc, "a node repeated", node.repeat, "at least 1");
    if (node.block_task_ns < 0 || node.block_task_ns > core::kMaxDurationNs) {
      return Bad(desc, "a node with a block task of ns", static_cast<double>(node.block_task_ns),
                 "between 0 and one hour");
    }
  }
  return absl::OkStatus();
}

void AddScaled(core::ResourceDemand& sum, const core::ResourceDemand& demand, double weight) {
  sum.issue += demand.issue * weight;
  sum.tensor += demand.tensor * weight;
  sum.special += demand.special * weight;
  sum.dram += demand.dram * weight;
  sum.l2 += demand.l2 * weight;
}

bool HasDemand(const core::ResourceDemand& demand) {
  return demand.issue > 0 || demand.tensor > 0 || demand.special > 0 || demand.dram > 0 ||
         demand.l2 > 0;
}

void BuildChain(PreparedKernel& kernel, int32_t device_sms) {
  const core::SimulationRecord& record = kernel.desc.simulation;
  kernel.gap_ns = static_cast<double>(record.node_gap_ns);
  std::vector<core::GraphNode> nodes = record.nodes;
  if (nodes.empty()) {
    core::GraphNode node;
    node.duration_ns = record.block_task_ns > 0       ? record.block_task_ns
                       : kernel.desc.solo_hint_ns > 0 ? kernel.desc.solo_hint_ns
                                                      : kLibraryDefaultNs;
    nodes.push_back(node);
  }
  double begin = 0;
  double busy = 0;
  double work = 0;
  for (core::GraphNode& node : nodes) {
    if (node.blocks <= 0) node.blocks = device_sms;
    if (!HasDemand(node.demand)) node.demand = record.demand;
    NodeRun run;
    run.node = node;
    run.needs = kernel.needs;
    run.needs.whole_sm = node.whole_sm;
    run.begin_ns = begin;
    run.first = kernel.nodes;
    const double duration = static_cast<double>(node.duration_ns) * node.repeat;
    AddScaled(kernel.demand, node.demand, duration);
    busy += duration * std::min(1.0, static_cast<double>(node.blocks) / device_sms);
    work += duration;
    begin += duration + kernel.gap_ns * node.repeat;
    kernel.nodes += node.repeat;
    kernel.runs.push_back(run);
  }
  kernel.chain_ns = begin - kernel.gap_ns;
  const core::ResourceDemand sum = kernel.demand;
  kernel.demand = {};
  AddScaled(kernel.demand, sum, 1 / kernel.chain_ns);
  kernel.busy_share = work > 0 ? busy / work : 1;
}

void CutIntoSegments(PreparedKernel& graph) {
  const core::GraphCut cut = core::CutOfRecord(graph.desc);
  if (cut.segments < 2) return;
  core::RecordCut record = core::CutRecord(graph.desc.simulation, core::SegmentNsOf(graph.desc));
  graph.segments = std::move(record.begins);
  const int64_t segment_ns = core::SegmentNsOf(graph.desc);
  graph.longer_cuts = core::LongerCuts(record.durations_ns, graph.segments.size(), segment_ns);
  if (graph.desc.graph()->measure_nodes) {
    graph.segment_times_ns = std::move(record.durations_ns);
    graph.segment_block_tasks_ns = std::move(record.block_tasks_ns);
  }
  graph.longest_segment_ns = cut.longest_ns;
}

}  // namespace

double PreparedKernel::SpeedOn(int32_t sms, int32_t device_sms) const {
  const std::vector<core::SpeedPoint>& table = desc.simulation.speed;
  if (table.empty()) return static_cast<double>(sms) / device_sms;
  // Below the table, proportional to its first point; above it, linear towards 1 at the whole
  // device.
  core::SpeedPoint low{0, 0};
  for (const core::SpeedPoint& point : table) {
    if (sms == point.sms) return point.speed;
    if (sms < point.sms) {
      return low.speed + (point.speed - low.speed) * (sms - low.sms) / (point.sms - low.sms);
    }
    low = point;
  }
  if (sms >= device_sms || low.sms >= device_sms) return low.sms >= device_sms ? low.speed : 1;
  return low.speed + (1 - low.speed) * (sms - low.sms) / (device_sms - low.sms);
}

NodePosition PreparedKernel::NodeAt(double time_ns) const {
  auto after =
      std::upper_bound(runs.begin(), runs.end(), time_ns,
                       [](double time, const NodeRun& run) { return time < run.begin_ns; });
  const NodeRun& run = after == runs.begin() ? runs.front() : *(after - 1);
  const double step = static_cast<double>(run.node.duration_ns) + gap_ns;
  const double inside = std::max(0.0, time_ns - run.begin_ns);
  const int64_t skip = std::min<int64_t>(static_cast<int64_t>(inside / step), run.node.repeat - 1);
  return {&run, run.first + skip, run.begin_ns + step * static_cast<double>(skip)};
}

NodePosition PreparedKernel::NodeOf(int64_t index) const {
  auto after = std::upper_bound(runs.begin(), runs.end(), index,
                                [](int64_t at, const NodeRun& run) { return at < run.first; });
  const NodeRun& run = *(after - 1);
  const double step = static_cast<double>(run.node.duration_ns) + gap_ns;
  return {&run, index, run.begin_ns + step * static_cast<double>(index - run.first)};
}

int64_t PreparedKernel::SegmentOf(int64_t node) const {
  return std::upper_bound(segments.begin(), segments.end(), node) - segments.begin() - 1;
}

core::SegmentStep PreparedKernel::StepOf(size_t segment, size_t since, int64_t longest_ns) const {
  return core::StepAt(longer_cuts, segment, since, segments.size(), longest_ns);
}

size_t PreparedKernel::FirstNotOutstanding(size_t segment, size_t since, int64_t longest_ns) const {
  const core::SegmentStep step = StepOf(segment, since, longest_ns);
  if (step.end >= segments.size()) return step.end;
  const core::SegmentStep next = StepOf(step.end, since, longest_ns);
  if (segment_times_ns.empty()) return next.end;
  if (IsEvictable(next)) return step.end;  // it leaves before its first block task here
  const auto load_of = [this](const core::SegmentStep& of) -> core::SegmentLoad {
    return {std::accumulate(segment_times_ns.begin() + static_cast<ptrdiff_t>(of.begin),
                            segment_times_ns.begin() + static_cast<ptrdiff_t>(of.end), int64_t{0}),
            IsEvictable(of)};
  };
  const int64_t length_ns = core::LengthInForce(core::SegmentNsOf(desc), longest_ns);
  return core::JoinsOutstanding(load_of(step), load_of(next), length_ns) ? next.end : step.end;
}

size_t PreparedKernel::EvictableStepsOf(int64_t longest_ns) const {
  size_t count = 0;
  for (size_t i = 0; i < segment_block_tasks_ns.size(); ++i) {
    if (segment_block_tasks_ns[i] > 0 && IsEvictable(StepOf(i, 0, longest_ns))) ++count;
  }
  return count;
}

size_t PreparedKernel::StepsOf(int64_t longest_ns) const {
  for (const core::LongerCut& cut : longer_cuts) {
    if (cut.length_ns <= longest_ns) return cut.begins.size();
  }
  return segments.size();
}

absl::StatusOr<PreparedKernel> PrepareKernelRecord(const core::KernelDesc& desc,
                                                   const core::DeviceProfile& profile,
                                                   const SmState& sms) {
  if (absl::Status status = CheckRecord(desc); !status.ok()) return status;
  PreparedKernel kernel;
  kernel.desc = desc;
  kernel.needs.threads = desc.resources.threads_per_block;
  kernel.needs.registers =
      int64_t{desc.resources.threads_per_block} * desc.resources.registers_per_thread;
  kernel.needs.shared_memory_bytes = desc.resources.shared_memory_bytes;
  if (desc.resources.threads_per_block <= 0) {
    return Bad(desc, "threads per block", desc.resources.threads_per_block, "at least 1");
  }
  if (desc.resources.workers_per_sm_max <= 0) {
    return Bad(desc, "workers per SM", desc.resources.workers_per_sm_max, "at least 1");
  }
  const int64_t fits = sms.FitsEmptySm(kernel.needs);
  if (fits < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A block of kernel '", desc.name, "' needs ", kernel.needs.threads, " threads, ",
        kernel.needs.registers, " registers and ", kernel.needs.shared_memory_bytes,
        " bytes of shared memory, and an SM has ", profile.threads_per_sm, ", ",
        profile.registers_per_sm, " and ", profile.shared_memory_per_sm_bytes, "."));
  }
  kernel.workers_per_sm =
      static_cast<int32_t>(std::min<int64_t>(fits, desc.resources.workers_per_sm_max));
  if (desc.kind() != core::TaskKind::kKernel || !desc.simulation.nodes.empty()) {
    BuildChain(kernel, profile.sm_count);
    if (desc.kind() == core::TaskKind::kGraph) CutIntoSegments(kernel);
  } else {
    int64_t task_ns = desc.simulation.block_task_ns;
    if (task_ns <= 0) task_ns = kBlockTaskDefaultNs;
    kernel.sm_ns_per_task = static_cast<double>(task_ns) / kernel.workers_per_sm;
    kernel.demand = desc.simulation.demand;
    if (desc.counters.present()) {
      kernel.counted = true;
      kernel.pipes.issue = std::min(1.0, desc.counters.issue);
      kernel.pipes.tensor = std::min(1.0, desc.counters.tensor);
      kernel.pipes.special = std::min(1.0, desc.counters.special);
    }
  }
  return kernel;
}

}  // namespace gpushare::sim
