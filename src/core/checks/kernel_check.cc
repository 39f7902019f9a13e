// The checks and defaults of a kernel at its registration. See kernel_check.h.

#include "src/core/checks/kernel_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

bool HasShape(const KernelResources& block) {
  return block.block_x != 0 || block.block_y != 0 || block.block_z != 0;
}

bool IsInRange(int32_t dimension) { return dimension >= 1 && dimension <= kMaxThreadsPerBlock; }

// Of a shape whose dimensions are in range, else 0.
int64_t ThreadsOfShape(const KernelResources& block) {
  if (!IsInRange(block.block_x) || !IsInRange(block.block_y) || !IsInRange(block.block_z)) {
    return 0;
  }
  return int64_t{block.block_x} * block.block_y * block.block_z;
}

absl::Status CheckName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("The kernel has no name.");
  if (name.size() >= kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The kernel name has ", name.size(), " bytes, and the limit is ", kMaxNameBytes - 1, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const KernelDesc& kernel) {
  const KernelResources& block = kernel.resources;
  if (block.threads_per_block < 1 || block.threads_per_block > kMaxThreadsPerBlock) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' has ", block.threads_per_block,
                     " threads a block, and CUDA allows 1 to ", kMaxThreadsPerBlock, "."));
  }
  if (!HasShape(block)) return absl::OkStatus();
  const int64_t threads = ThreadsOfShape(block);
  if (threads == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' has blocks of ", block.block_x, " x ", block.block_y, " x ",
        block.block_z, " threads, and each dimension lies between 1 and ", kMaxThreadsPerBlock,
        "; or all are 0."));
  }
  if (threads != block.threads_per_block) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' has blocks of ", block.block_x, " x ",
                     block.block_y, " x ", block.block_z, " threads and ", block.threads_per_block,
                     " threads a block, and they must be equal."));
  }
  return absl::OkStatus();
}

absl::Status CheckResources(const KernelDesc& kernel) {
  const KernelResources& block = kernel.resources;
  if (block.workers_per_sm_max < 1 || block.workers_per_sm_max > kMaxWorkersPerSm) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' has ", block.workers_per_sm_max,
                     " workers an SM, and an SM holds 1 to ", kMaxWorkersPerSm, "."));
  }
  if (block.registers_per_thread < 0 || block.registers_per_thread > kMaxRegistersPerThread ||
      block.shared_memory_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' has ", block.registers_per_thread, " registers a thread and ",
        block.shared_memory_bytes, " bytes of shared memory; at most ", kMaxRegistersPerThread,
        " and no negative number."));
  }
  if (block.dynamic_shared_memory_bytes < 0 ||
      block.dynamic_shared_memory_bytes > block.shared_memory_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' has ", block.dynamic_shared_memory_bytes,
        " bytes of dynamic shared memory, and it must lie between 0 and all of its shared memory, ",
        block.shared_memory_bytes, " bytes."));
  }
  return absl::OkStatus();
}

absl::Status CheckDurations(const KernelDesc& kernel) {
  for (const auto& [what, value] : {std::pair{"The yield interval", kernel.yield_interval_ns},
                                    std::pair{"The solo hint", kernel.solo_hint_ns},
                                    std::pair{"The block task", kernel.simulation.block_task_ns}}) {
    if (value >= 0 && value <= kMaxDurationNs) continue;
    return absl::InvalidArgumentError(absl::StrCat(what, " of '", kernel.name, "' is ", value,
                                                   " ns, and it must lie between 0 and ",
                                                   kMaxDurationNs, " ns."));
  }
  return absl::OkStatus();
}

absl::Status CheckGraphSource(const KernelDesc& kernel, const GraphCode& graph) {
  const int sources =
      (graph.capture != nullptr) + (graph.graph != nullptr) + (graph.graph_exec != nullptr);
  if (sources > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name, "' comes in ", sources,
                     " forms, and it is one of a graph, an instantiated graph and a capture "
                     "callback."));
  }
  if (graph.graph_exec != nullptr && kernel.confinable) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name,
                     "' is instantiated for the whole device, and it must not be confinable."));
  }
  return absl::OkStatus();
}

absl::Status CheckSegments(const std::string& name, const GraphCode& graph) {
  if (graph.segment_ns < -1 || graph.segment_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Graph '", name, "' has segments of ", graph.segment_ns, " ns, and they have 1 to ",
        kMaxDurationNs, " ns, 0 (default) or -1 (never)."));
  }
  if (graph.graph_exec == nullptr) return absl::OkStatus();
  if (!graph.measure_nodes && !graph.measure_places) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' has ", graph.measure_nodes ? "measure_nodes" : "measure_places",
                   ", and only a graph that comes as a graph or as a capture is measured."));
}

absl::Status CheckWarmMemory(const std::string& name, const GraphCode& graph) {
  if (graph.warm_memory.empty()) return absl::OkStatus();
  if (graph.graph_exec != nullptr || graph.segment_ns >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' has warm memory, and only a graph has it that comes as a graph or as a "
                     "capture and is never cut (segment_ns -1)."));
  }
  for (size_t i = 0; i < graph.warm_memory.size(); ++i) {
    const MemoryRange& range = graph.warm_memory[i];
    if (range.address != 0 && range.bytes > 0 && range.end() > range.address) continue;
    return absl::InvalidArgumentError(absl::StrCat("Range ", i, " of the warm memory of graph '",
                                                   name, "' has the address ", range.address,
                                                   " and ", range.bytes, " bytes."));
  }
  return absl::OkStatus();
}

absl::Status CheckCode(const KernelDesc& kernel) {
  const bool has_blocks =
      HasShape(kernel.resources) || kernel.resources.dynamic_shared_memory_bytes != 0;
  if (has_blocks && kernel.kind() != TaskKind::kKernel) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", kernel.name,
                     "' has a block's shape or dynamic shared memory, and it is not of kind "
                     "kernel."));
  }
  if (const GraphCode* const graph = kernel.graph()) {
    absl::Status status = CheckGraphSource(kernel, *graph);
    if (status.ok()) status = CheckSegments(kernel.name, *graph);
    return status.ok() ? CheckWarmMemory(kernel.name, *graph) : status;
  }
  const LibraryCall* const call = kernel.library_call();
  if (call == nullptr || call->operation == LibraryOperation::kNone) return absl::OkStatus();
  return CheckLibraryCall(kernel.name, *call);
}

}  // namespace

void FillUnknown(KernelDesc& kernel) {
  KernelResources& block = kernel.resources;
  if (block.threads_per_block == 0) {
    const int64_t threads = ThreadsOfShape(block);
    block.threads_per_block =
        threads == 0 ? kDefaultThreadsPerBlock : static_cast<int32_t>(threads);
  }
  if (block.registers_per_thread == 0) block.registers_per_thread = kDefaultRegistersPerThread;
  if (block.workers_per_sm_max == 0) block.workers_per_sm_max = kDefaultWorkersPerSm;
  if (block.shared_memory_bytes == 0 && block.dynamic_shared_memory_bytes > 0) {
    block.shared_memory_bytes = block.dynamic_shared_memory_bytes;
  }
}

absl::Status CheckKernel(const KernelDesc& kernel) {
  for (absl::Status (*check)(const KernelDesc&) :
       {+[](const KernelDesc& given) { return CheckName(given.name); }, &CheckShape,
        &CheckResources, &CheckDurations, &CheckCode}) {
    if (absl::Status status = check(kernel); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gpushare::core
