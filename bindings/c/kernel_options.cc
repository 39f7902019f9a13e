// Reading of kernel options and simulation records; see kernels.h. kernel_code.h reads the code.

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/handles.h"
#include "bindings/c/kernel_code.h"
#include "bindings/c/kernel_counters.h"
#include "bindings/c/kernels.h"
#include "bindings/c/options.h"
#include "src/core/base/limits.h"

namespace gpushare::abi {
namespace {

// Limit of repeats of one node: a larger number is taken for a unit error.
constexpr int32_t kRepeatMax = 1 << 20;

absl::Status CheckNumber(absl::string_view field, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();  // false for NaN
  return absl::InvalidArgumentError(absl::StrCat("simulation_record.", field, " is ", value,
                                                 ", and it must lie between ", least, " and ", most,
                                                 "."));
}

absl::Status CheckDuration(absl::string_view field, int64_t value) {
  if (value >= 0 && value <= core::kMaxDurationNs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("simulation_record.", field, " is ", value,
                                                 " ns, and it must lie between 0 and ",
                                                 core::kMaxDurationNs, " ns."));
}

absl::Status ReadDemand(const gpushare_resource_demand& demand, core::ResourceDemand& out) {
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("demand.issue", demand.issue, 0, 1));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("demand.tensor", demand.tensor, 0, 1));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("demand.special", demand.special, 0, 1));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("demand.dram", demand.dram, 0, 1));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("demand.l2", demand.l2, 0, 1));
  out = {demand.issue, demand.tensor, demand.special, demand.dram, demand.l2};
  return absl::OkStatus();
}

absl::Status ReadSpeed(const gpushare_simulation_record& record, core::SimulationRecord& out) {
  if (record.speed_count > core::kMaxSpeedPoints) {
    return absl::InvalidArgumentError(absl::StrCat("simulation_record.speed_count is ",
                                                   record.speed_count, ", and the limit is ",
                                                   core::kMaxSpeedPoints, "."));
  }
  if (record.speed_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("simulation_record.speed", record.speed));
  }
  int32_t before = 0;
  for (uint32_t i = 0; i < record.speed_count; ++i) {
    const gpushare_speed_point& point = record.speed[i];
    GPUSHARE_RETURN_IF_ERROR(CheckReserved("speed_point", point.reserved));
    if (point.sms <= before) {
      return absl::InvalidArgumentError(absl::StrCat("simulation_record.speed[", i, "].sms is ",
                                                     point.sms, ", and it must be more than ",
                                                     before, ", the one before."));
    }
    GPUSHARE_RETURN_IF_ERROR(CheckNumber("speed", point.speed, 1e-6, 100));
    before = point.sms;
    out.speed.push_back({point.sms, point.speed});
  }
  return absl::OkStatus();
}

absl::Status ReadChoice(absl::string_view field, gpushare_choice choice, bool& value) {
  switch (choice) {
    case GPUSHARE_CHOICE_DEFAULT:
      return absl::OkStatus();
    case GPUSHARE_CHOICE_YES:
      value = true;
      return absl::OkStatus();
    case GPUSHARE_CHOICE_NO:
      value = false;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(field, " is ", choice, ", and it is 0 (default), 1 (yes) or 2 (no)."));
  }
}

absl::Status ReadNodes(const gpushare_simulation_record& record, core::SimulationRecord& out) {
  if (record.node_count > core::kMaxGraphNodes) {
    return absl::InvalidArgumentError(absl::StrCat("simulation_record.node_count is ",
                                                   record.node_count, ", and the limit is ",
                                                   core::kMaxGraphNodes, "."));
  }
  if (record.node_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("simulation_record.nodes", record.nodes));
  }
  for (uint32_t i = 0; i < record.node_count; ++i) {
    const gpushare_graph_node& node = record.nodes[i];
    GPUSHARE_RETURN_IF_ERROR(CheckReserved("graph_node", node.reserved));
    GPUSHARE_RETURN_IF_ERROR(CheckDuration("nodes.duration_ns", node.duration_ns));
    GPUSHARE_RETURN_IF_ERROR(CheckNumber("nodes.blocks", node.blocks, 0, 2147483647.0));
    GPUSHARE_RETURN_IF_ERROR(CheckNumber("nodes.repeat", node.repeat, 0, kRepeatMax));
    core::GraphNode& target = out.nodes.emplace_back();
    target.duration_ns = node.duration_ns;
    target.blocks = node.blocks;
    if (node.repeat > 0) target.repeat = node.repeat;
    GPUSHARE_RETURN_IF_ERROR(ReadChoice("graph_node.whole_sm", node.whole_sm, target.whole_sm));
    GPUSHARE_RETURN_IF_ERROR(ReadDemand(node.demand, target.demand));
  }
  return absl::OkStatus();
}

absl::Status ReadRecord(const gpushare_simulation_record& given, core::SimulationRecord& out) {
  gpushare_simulation_record record;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("simulation_record", &given, &record));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("simulation_record", record.reserved));
  GPUSHARE_RETURN_IF_ERROR(CheckDuration("block_task_ns", record.block_task_ns));
  GPUSHARE_RETURN_IF_ERROR(CheckDuration("node_gap_ns", record.node_gap_ns));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("block_task_spread", record.block_task_spread, 0, 10));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("worker_overhead", record.worker_overhead,
                                       core::kMinWorkerOverhead, core::kMaxWorkerOverhead));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("memory_parallelism", record.memory_parallelism, 0, 1000));
  GPUSHARE_RETURN_IF_ERROR(CheckNumber("saturating_occupancy", record.saturating_occupancy, 0, 1));
  out = core::SimulationRecord();
  out.present = true;
  out.block_task_ns = record.block_task_ns;
  out.block_task_spread = record.block_task_spread;
  out.worker_overhead = record.worker_overhead;
  out.memory_parallelism = record.memory_parallelism;
  if (record.saturating_occupancy > 0) out.saturating_occupancy = record.saturating_occupancy;
  out.node_gap_ns = record.node_gap_ns;
  GPUSHARE_RETURN_IF_ERROR(ReadDemand(record.demand, out.demand));
  GPUSHARE_RETURN_IF_ERROR(ReadSpeed(record, out));
  return ReadNodes(record, out);
}

// The device finds out what neither the caller nor the profile gives (0: unknown).
void ReadResources(const gpushare_kernel_options& options, bool in_profile,
                   core::KernelResources& out) {
  if (!in_profile) {
    out.threads_per_block = out.registers_per_thread = out.workers_per_sm_max = 0;
  }
  const bool has_shape = options.block_x != 0 || options.block_y != 0 || options.block_z != 0;
  // A block's shape from the caller overrides the number of threads in the profile.
  if (options.threads_per_block != 0 || has_shape) {
    out.threads_per_block = options.threads_per_block;
  }
  out.block_x = options.block_x;
  out.block_y = options.block_y;
  out.block_z = options.block_z;
  if (options.registers_per_thread != 0) out.registers_per_thread = options.registers_per_thread;
  if (options.shared_memory_bytes != 0) out.shared_memory_bytes = options.shared_memory_bytes;
  out.dynamic_shared_memory_bytes = options.dynamic_shared_memory_bytes;
  if (options.workers_per_sm_max != 0) out.workers_per_sm_max = options.workers_per_sm_max;
}

}  // namespace

absl::StatusOr<core::KernelDesc> KernelDescOf(const gpushare_kernel_options& options,
                                              const core::KernelDesc* known) {
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved));
  core::KernelDesc out = known == nullptr ? core::KernelDesc() : *known;
  out.id = core::KernelId();
  out.name = options.name;
  ReadResources(options, known != nullptr, out.resources);
  GPUSHARE_RETURN_IF_ERROR(
      ReadChoice("kernel_options.evictable", options.evictable, out.evictable));
  GPUSHARE_RETURN_IF_ERROR(
      ReadChoice("kernel_options.confinable", options.confinable, out.confinable));
  GPUSHARE_RETURN_IF_ERROR(ReadChoice("kernel_options.roomy", options.roomy, out.resources.roomy));
  if (options.yield_interval_ns != 0) out.yield_interval_ns = options.yield_interval_ns;
  if (options.solo_ns != 0) out.solo_hint_ns = options.solo_ns;
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved2));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved3, "reserved3"));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved4, "reserved4"));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved5, "reserved5"));
  GPUSHARE_RETURN_IF_ERROR(ReadCode(options, out));
  if (options.simulation != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(ReadRecord(*options.simulation, out.simulation));
  }
  if (options.counters != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(ReadCounters(*options.counters, out));
  }
  return out;
}

absl::StatusOr<core::FusedKernelDesc> FusedShapeOf(const gpushare_fused_kernel_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("fused_kernel_options", options.reserved));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("fused_kernel_options", options.reserved2, "reserved2"));
  core::FusedKernelDesc out;
  out.name = options.name;
  if (options.tensor_blocks != 0) out.tensor_blocks = options.tensor_blocks;
  if (options.cuda_blocks != 0) out.cuda_blocks = options.cuda_blocks;
  for (const auto& [given, target] :
       {std::pair{options.opportune_load_ratio, &out.opportune_load_ratio},
        std::pair{options.opportune_duration_ratio, &out.opportune_duration_ratio}}) {
    if (given == 0) continue;
    if (!(given > 0 && given <= 1000)) {  // NaN too
      return absl::InvalidArgumentError(
          absl::StrCat("A ratio of fused kernel '", options.name, "' is ", given,
                       ", and it must be 0 or lie between 0 and 1000."));
    }
    *target = given;
  }
  out.threads_per_block = options.threads_per_block;
  out.dynamic_shared_memory_bytes = options.dynamic_shared_memory_bytes;
  out.blocks_per_sm = options.blocks_per_sm;
  out.function = options.function;
  return out;
}

}  // namespace gpushare::abi
