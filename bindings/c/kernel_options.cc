// Reading of kernel options and simulation records; see kernels.h.

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/handles.h"
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

absl::Status ReadKind(const gpushare_kernel_options& options, core::KernelDesc& out) {
  switch (options.kind) {
    case GPUSHARE_TASK_DEFAULT:
      return absl::OkStatus();
    case GPUSHARE_TASK_KERNEL:
      out.kind = core::TaskKind::kKernel;
      return absl::OkStatus();
    case GPUSHARE_TASK_GRAPH:
      out.kind = core::TaskKind::kGraph;
      return absl::OkStatus();
    case GPUSHARE_TASK_LIBRARY:
      out.kind = core::TaskKind::kLibrary;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("The kind of kernel '", options.name, "' is ", options.kind,
                       ", and a kernel is of kind 1 (kernel), 2 (graph) or 3 (library)."));
  }
}

// Enumerations with equal numbers on both sides, and operands that are copied as bytes.
static_assert(static_cast<int>(core::LibraryOperation::kMatmul) == GPUSHARE_LIBRARY_MATMUL);
static_assert(static_cast<int>(core::LibraryOperation::kConvolution) ==
              GPUSHARE_LIBRARY_CONVOLUTION);
static_assert(static_cast<int>(core::LibraryOperation::kPooling) == GPUSHARE_LIBRARY_POOLING);
static_assert(static_cast<int>(core::LibraryOperation::kActivation) == GPUSHARE_LIBRARY_ACTIVATION);
static_assert(static_cast<int>(core::LibraryOperation::kSoftmax) == GPUSHARE_LIBRARY_SOFTMAX);
static_assert(static_cast<int>(core::DataType::kFloat32) == GPUSHARE_FLOAT32);
static_assert(static_cast<int>(core::DataType::kFloat16) == GPUSHARE_FLOAT16);
static_assert(static_cast<int>(core::DataType::kBfloat16) == GPUSHARE_BFLOAT16);
static_assert(static_cast<int>(core::LibraryMode::kMaxPooling) == GPUSHARE_MODE_MAX_POOLING);
static_assert(static_cast<int>(core::LibraryMode::kAveragePooling) ==
              GPUSHARE_MODE_AVERAGE_POOLING);
static_assert(static_cast<int>(core::LibraryMode::kRelu) == GPUSHARE_MODE_RELU);
static_assert(static_cast<int>(core::LibraryMode::kTanh) == GPUSHARE_MODE_TANH);
static_assert(static_cast<int>(core::LibraryMode::kSigmoid) == GPUSHARE_MODE_SIGMOID);
static_assert(sizeof(gpushare_library_arguments) == sizeof(core::LibraryArguments));
static_assert(offsetof(gpushare_library_arguments, a) == offsetof(core::LibraryArguments, a));
static_assert(offsetof(gpushare_library_arguments, b) == offsetof(core::LibraryArguments, b));
static_assert(offsetof(gpushare_library_arguments, c) == offsetof(core::LibraryArguments, c));
static_assert(offsetof(gpushare_library_arguments, d) == offsetof(core::LibraryArguments, d));
static_assert(offsetof(gpushare_library_arguments, alpha) ==
              offsetof(core::LibraryArguments, alpha));
static_assert(offsetof(gpushare_library_arguments, beta) == offsetof(core::LibraryArguments, beta));

absl::Status CheckEnum(absl::string_view field, int32_t value, int32_t least, int32_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("library_call.", field, " is ", value,
                                                 ", and it must lie between ", least, " and ", most,
                                                 "."));
}

int64_t OneIfZero(int64_t value) { return value == 0 ? 1 : value; }

absl::Status ReadLibraryCall(const gpushare_library_call& given, core::LibraryCall& out) {
  gpushare_library_call call;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("library_call", &given, &call));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("library_call", call.reserved));
  GPUSHARE_RETURN_IF_ERROR(
      CheckEnum("operation", call.operation, GPUSHARE_LIBRARY_MATMUL, GPUSHARE_LIBRARY_SOFTMAX));
  GPUSHARE_RETURN_IF_ERROR(CheckEnum("type", call.type, GPUSHARE_FLOAT32, GPUSHARE_BFLOAT16));
  GPUSHARE_RETURN_IF_ERROR(
      CheckEnum("mode", call.mode, GPUSHARE_MODE_DEFAULT, GPUSHARE_MODE_SIGMOID));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("library_call.channels_last", call.channels_last));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("library_call.transpose_a", call.transpose_a));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("library_call.transpose_b", call.transpose_b));
  out.operation = static_cast<core::LibraryOperation>(call.operation);
  out.type = static_cast<core::DataType>(call.type);
  out.mode = static_cast<core::LibraryMode>(call.mode);
  out.channels_last = call.channels_last == 1;
  out.transpose_a = call.transpose_a == 1;
  out.transpose_b = call.transpose_b == 1;
  out.m = call.m;
  out.n = call.n;
  out.k = call.k;
  out.batch = OneIfZero(call.batch);
  out.channels = call.channels;
  out.height = call.height;
  out.width = call.width;
  out.filters = call.filters;
  out.filter_height = call.filter_height;
  out.filter_width = call.filter_width;
  out.padding = call.padding;
  out.stride = OneIfZero(call.stride);
  out.dilation = OneIfZero(call.dilation);
  out.groups = OneIfZero(call.groups);
  return absl::OkStatus();
}

// The device finds out what neither the caller nor the profile gives (0: unknown).
void ReadResources(const gpushare_kernel_options& options, bool in_profile, core::KernelDesc& out) {
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

absl::Status ReadHandles(const gpushare_kernel_options& options, core::KernelDesc& out) {
  out.original_function = options.original_function;
  out.worker_function = options.worker_function;
  out.slice_function = options.slice_function;
  out.graph = options.graph;
  out.graph_exec = options.graph_exec;
  out.capture = options.capture;
  out.capture_user = options.capture_user;
  if (options.graph_exec == nullptr) return absl::OkStatus();
  if (options.confinable == GPUSHARE_CHOICE_YES) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel_options.confinable of '", options.name,
        "' is 1 (yes), and a graph that is instantiated already (graph_exec) runs on the whole "
        "device only."));
  }
  out.confinable = false;
  return absl::OkStatus();
}

absl::Status ReadWarmMemory(const gpushare_kernel_options& options, core::KernelDesc& out) {
  if (options.warm_memory_count > core::kMaxWarmRanges) {
    return absl::InvalidArgumentError(absl::StrCat("kernel_options.warm_memory_count is ",
                                                   options.warm_memory_count, ", and the limit is ",
                                                   core::kMaxWarmRanges, "."));
  }
  if (options.warm_memory_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("kernel_options.warm_memory", options.warm_memory));
  }
  out.warm_memory.clear();
  for (uint32_t i = 0; i < options.warm_memory_count; ++i) {
    const gpushare_memory_range& range = options.warm_memory[i];
    out.warm_memory.push_back({reinterpret_cast<uintptr_t>(range.address), range.size_bytes});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<core::KernelDesc> KernelDescOf(const gpushare_kernel_options& options,
                                              const core::KernelDesc* known) {
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved));
  core::KernelDesc out = known == nullptr ? core::KernelDesc() : *known;
  out.id = core::KernelId();
  out.name = options.name;
  GPUSHARE_RETURN_IF_ERROR(ReadKind(options, out));
  ReadResources(options, known != nullptr, out);
  GPUSHARE_RETURN_IF_ERROR(
      ReadChoice("kernel_options.evictable", options.evictable, out.evictable));
  GPUSHARE_RETURN_IF_ERROR(
      ReadChoice("kernel_options.confinable", options.confinable, out.confinable));
  GPUSHARE_RETURN_IF_ERROR(ReadChoice("kernel_options.roomy", options.roomy, out.roomy));
  if (options.yield_interval_ns != 0) out.yield_interval_ns = options.yield_interval_ns;
  if (options.solo_ns != 0) out.solo_hint_ns = options.solo_ns;
  out.segment_ns = options.segment_ns;
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved2));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved3, "reserved3"));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("kernel_options.measure_nodes", options.measure_nodes));
  out.measure_nodes = options.measure_nodes == 1;
  GPUSHARE_RETURN_IF_ERROR(CheckBool("kernel_options.measure_places", options.measure_places));
  out.measure_places = options.measure_places == 1;
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("kernel_options", options.reserved4, "reserved4"));
  GPUSHARE_RETURN_IF_ERROR(ReadWarmMemory(options, out));
  GPUSHARE_RETURN_IF_ERROR(ReadHandles(options, out));
  if (options.library != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(ReadLibraryCall(*options.library, out.library_call));
  }
  if (options.simulation != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(ReadRecord(*options.simulation, out.simulation));
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
