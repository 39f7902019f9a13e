// The checks and defaults of a kernel at its registration. See kernel_check.h.

#include "src/core/checks/kernel_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

bool HasShape(const KernelDesc& kernel) {
  return kernel.block_x != 0 || kernel.block_y != 0 || kernel.block_z != 0;
}

bool IsInRange(int32_t dimension) { return dimension >= 1 && dimension <= kMaxThreadsPerBlock; }

// Of a shape whose dimensions are in range, else 0.
int64_t ThreadsOfShape(const KernelDesc& kernel) {
  if (!IsInRange(kernel.block_x) || !IsInRange(kernel.block_y) || !IsInRange(kernel.block_z)) {
    return 0;
  }
  return int64_t{kernel.block_x} * kernel.block_y * kernel.block_z;
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
  if (kernel.threads_per_block < 1 || kernel.threads_per_block > kMaxThreadsPerBlock) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' has ", kernel.threads_per_block,
                     " threads a block, and CUDA allows 1 to ", kMaxThreadsPerBlock, "."));
  }
  if (!HasShape(kernel)) return absl::OkStatus();
  const int64_t threads = ThreadsOfShape(kernel);
  if (threads == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' has blocks of ", kernel.block_x, " x ", kernel.block_y, " x ",
        kernel.block_z, " threads, and each dimension lies between 1 and ", kMaxThreadsPerBlock,
        "; or all are 0."));
  }
  if (threads != kernel.threads_per_block) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' has blocks of ", kernel.block_x, " x ",
                     kernel.block_y, " x ", kernel.block_z, " threads and ",
                     kernel.threads_per_block, " threads a block, and they must be equal."));
  }
  return absl::OkStatus();
}

absl::Status CheckResources(const KernelDesc& kernel) {
  if (kernel.workers_per_sm_max < 1 || kernel.workers_per_sm_max > kMaxWorkersPerSm) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' has ", kernel.workers_per_sm_max,
                     " workers an SM, and an SM holds 1 to ", kMaxWorkersPerSm, "."));
  }
  if (kernel.registers_per_thread < 0 || kernel.registers_per_thread > kMaxRegistersPerThread ||
      kernel.shared_memory_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' has ", kernel.registers_per_thread, " registers a thread and ",
        kernel.shared_memory_bytes, " bytes of shared memory; at most ", kMaxRegistersPerThread,
        " and no negative number."));
  }
  if (kernel.dynamic_shared_memory_bytes < 0 ||
      kernel.dynamic_shared_memory_bytes > kernel.shared_memory_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' has ", kernel.dynamic_shared_memory_bytes,
        " bytes of dynamic shared memory, and it must lie between 0 and all of its shared memory, ",
        kernel.shared_memory_bytes, " bytes."));
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

absl::Status CheckGraphSources(const KernelDesc& kernel) {
  const int sources =
      (kernel.capture != nullptr) + (kernel.graph != nullptr) + (kernel.graph_exec != nullptr);
  if (sources > 0 && kernel.kind != TaskKind::kGraph) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", kernel.name, "' has a graph or a capture callback, and it is not of kind graph."));
  }
  if (sources > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name, "' comes in ", sources,
                     " forms, and it is one of a graph, an instantiated graph and a capture "
                     "callback."));
  }
  if (kernel.graph_exec != nullptr && kernel.confinable) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name,
                     "' is instantiated for the whole device, and it must not be confinable."));
  }
  return absl::OkStatus();
}

absl::Status CheckSegments(const KernelDesc& kernel) {
  if (kernel.segment_ns != 0 && kernel.kind != TaskKind::kGraph) {
    return absl::InvalidArgumentError(absl::StrCat("'", kernel.name, "' has segments of ",
                                                   kernel.segment_ns,
                                                   " ns, and only a graph is cut into segments."));
  }
  if (kernel.segment_ns < -1 || kernel.segment_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Graph '", kernel.name, "' has segments of ", kernel.segment_ns, " ns, and they have 1 to ",
        kMaxDurationNs, " ns, 0 (default) or -1 (never)."));
  }
  if (kernel.kind == TaskKind::kGraph && kernel.graph_exec == nullptr) return absl::OkStatus();
  if (!kernel.measure_nodes && !kernel.measure_places) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", kernel.name, "' has ", kernel.measure_nodes ? "measure_nodes" : "measure_places",
      ", and only a graph that comes as a graph or as a capture is measured."));
}

absl::Status CheckWarmMemory(const KernelDesc& kernel) {
  if (kernel.warm_memory.empty()) return absl::OkStatus();
  if (kernel.kind != TaskKind::kGraph || kernel.graph_exec != nullptr || kernel.segment_ns >= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", kernel.name,
                     "' has warm memory, and only a graph has it that comes as a graph or as a "
                     "capture and is never cut (segment_ns -1)."));
  }
  for (size_t i = 0; i < kernel.warm_memory.size(); ++i) {
    const MemoryRange& range = kernel.warm_memory[i];
    if (range.address != 0 && range.bytes > 0 && range.end() > range.address) continue;
    return absl::InvalidArgumentError(absl::StrCat("Range ", i, " of the warm memory of graph '",
                                                   kernel.name, "' has the address ", range.address,
                                                   " and ", range.bytes, " bytes."));
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const KernelDesc& kernel) {
  if (kernel.kind == TaskKind::kMemcpy || kernel.kind == TaskKind::kOpaque) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", kernel.name, "' is registered as a copy or opaque work, which need no kernel."));
  }
  const bool launches = kernel.original_function != nullptr || kernel.worker_function != nullptr ||
                        kernel.slice_function != nullptr || HasShape(kernel) ||
                        kernel.dynamic_shared_memory_bytes != 0;
  if (launches && kernel.kind != TaskKind::kKernel) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", kernel.name,
                     "' has a function, a block's shape or dynamic shared memory, and it is not of "
                     "kind kernel."));
  }
  if (absl::Status status = CheckGraphSources(kernel); !status.ok()) return status;
  if (absl::Status status = CheckSegments(kernel); !status.ok()) return status;
  if (absl::Status status = CheckWarmMemory(kernel); !status.ok()) return status;
  if (kernel.library_call.operation == LibraryOperation::kNone) return absl::OkStatus();
  if (kernel.kind != TaskKind::kLibrary) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", kernel.name, "' has a library call, and it is not of kind library."));
  }
  return CheckLibraryCall(kernel.name, kernel.library_call);
}

}  // namespace

void FillUnknown(KernelDesc& kernel) {
  if (kernel.threads_per_block == 0) {
    const int64_t threads = ThreadsOfShape(kernel);
    kernel.threads_per_block =
        threads == 0 ? kDefaultThreadsPerBlock : static_cast<int32_t>(threads);
  }
  if (kernel.registers_per_thread == 0) kernel.registers_per_thread = kDefaultRegistersPerThread;
  if (kernel.workers_per_sm_max == 0) kernel.workers_per_sm_max = kDefaultWorkersPerSm;
  if (kernel.shared_memory_bytes == 0 && kernel.dynamic_shared_memory_bytes > 0) {
    kernel.shared_memory_bytes = kernel.dynamic_shared_memory_bytes;
  }
}

absl::Status CheckKernel(const KernelDesc& kernel) {
  for (absl::Status (*check)(const KernelDesc&) :
       {+[](const KernelDesc& given) { return CheckName(given.name); }, &CheckShape,
        &CheckResources, &CheckDurations, &CheckKind}) {
    if (absl::Status status = check(kernel); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gpushare::core
