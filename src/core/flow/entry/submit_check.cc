// Checks the specification of a task. See submit_check.h.

#include "src/core/flow/entry/submit_check.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

// CUDA's own limits of y and z; x is bounded by its type.
constexpr int32_t kMaxGridYz = 65535;

absl::Status CheckGrid(const TaskSpec& spec, const KernelDesc& kernel) {
  const auto [x, y, z] = spec.work.grid;
  if (x == 0 && y == 0 && z == 0) return absl::OkStatus();
  if (x < 1 || y < 1 || z < 1 || y > kMaxGridYz || z > kMaxGridYz) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch of kernel '", kernel.name, "' has the grid ", x, " x ", y, " x ", z,
                     ", and each dimension is at least 1, the second and third at most ",
                     kMaxGridYz, "; or all are 0."));
  }
  // Below 2^63: x < 2^31, y and z < 2^16.
  const int64_t product = int64_t{x} * y * z;
  if (product != spec.work.block_tasks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A launch of kernel '", kernel.name, "' has the grid ", x, " x ", y, " x ", z, " of ",
        product, " blocks and ", spec.work.block_tasks, " block tasks, and they must be equal."));
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(const TaskSpec& spec, const KernelDesc& kernel, int64_t block_tasks_max) {
  if (spec.work.block_tasks < 1 || spec.work.block_tasks > block_tasks_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch of kernel '", kernel.name, "' has ", spec.work.block_tasks,
                     " block tasks, and it must have 1 to ", block_tasks_max, "."));
  }
  return CheckGrid(spec, kernel);
}

// The operands of a library call are a struct: a caller that packs another one fails here, not on
// the device.
absl::Status CheckLibraryArguments(const TaskSpec& spec, const KernelDesc& kernel) {
  const LibraryCall* const call = kernel.library_call();
  if (call == nullptr || call->operation == LibraryOperation::kNone ||
      spec.work.arguments_bytes == sizeof(LibraryArguments)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("A task of library call '", kernel.name, "' has ", spec.work.arguments_bytes,
                   " bytes of arguments, and the operands of a library call have ",
                   sizeof(LibraryArguments), "."));
}

absl::Status CheckCopy(const CopyRequest& copy) {
  if (copy.direction == CopyDirection::kNone || copy.direction > CopyDirection::kPeer) {
    return absl::InvalidArgumentError("A copy has no direction.");
  }
  if (copy.bytes < 1 || copy.bytes > kMaxCopyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A copy has ", copy.bytes, " bytes, and it must have 1 to ", kMaxCopyBytes, "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckArrival(absl::string_view what, TimeNs arrival_ns, TimeNs now_ns) {
  if (arrival_ns < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " arrives at ", arrival_ns, " ns, before the clock began."));
  }
  if (arrival_ns - now_ns <= kMaxArrivalAheadNs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " arrives at ", arrival_ns, " ns, ",
                                                 arrival_ns - now_ns, " ns from now, and at most ",
                                                 kMaxArrivalAheadNs, " ns are allowed."));
}

absl::Status CheckInput(absl::string_view what, double input_size) {
  if (input_size >= 0 && input_size <= kMaxInputSize) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, "'s input has the size ", input_size,
                                                 ", and it must lie between 0 and ", kMaxInputSize,
                                                 "."));
}

absl::Status CheckOwnInput(const TaskSpec& spec, AppClass app_class) {
  if (spec.input_size == 0) return absl::OkStatus();
  if (app_class == AppClass::kBestEffort || spec.query) {
    return absl::InvalidArgumentError(
        absl::StrCat("A task states an input of the size ", spec.input_size, ", and ",
                     spec.query ? "its query states that." : "best-effort work has no queries."));
  }
  return CheckInput("A task", spec.input_size);
}

absl::Status CheckNext(const TaskSpec& spec, AppClass app_class) {
  const int64_t within_ns = spec.next_within_ns;
  if (within_ns == 0) return absl::OkStatus();
  if (app_class == AppClass::kBestEffort) {
    return absl::InvalidArgumentError(
        absl::StrCat("A task of a best-effort app states a next query within ", within_ns,
                     " ns, and only tasks of latency-critical apps may."));
  }
  if (within_ns >= kNoNextQuery && within_ns <= kMaxNextWithinNs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "A task states a next query within ", within_ns, " ns, and it must lie between 1 ", "and ",
      kMaxNextWithinNs, " ns, or be ", kNoNextQuery, " if none follows."));
}

absl::Status CheckSpec(const TaskSpec& spec, const KernelDesc* kernel, int64_t block_tasks_max) {
  if (spec.work.arguments_bytes > kMaxArgumentBytes) {
    return absl::InvalidArgumentError(absl::StrCat("A task has ", spec.work.arguments_bytes,
                                                   " bytes of arguments, and the limit is ",
                                                   kMaxArgumentBytes, "."));
  }
  if (spec.work.arguments_bytes > 0 && spec.work.arguments == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("A task has ", spec.work.arguments_bytes,
                                                   " bytes of arguments and no pointer to them."));
  }
  if (spec.wait_tickets.size() > kMaxWaitsPerTask || spec.wait_events.size() > kMaxWaitsPerTask) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A task waits for ", spec.wait_tickets.size(), " tickets and ", spec.wait_events.size(),
        " events, and the limit is ", kMaxWaitsPerTask, " of each."));
  }
  if (spec.work.declared_ns < 0 || spec.work.declared_ns > kMaxDurationNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("A task declares a duration of ", spec.work.declared_ns,
                     " ns, and it must lie between 0 and ", kMaxDurationNs, " ns."));
  }
  switch (spec.work.kind) {
    case TaskKind::kKernel:
    case TaskKind::kGraph:
    case TaskKind::kLibrary:
      if (kernel == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("Kernel ", spec.kernel.value, " is not registered."));
      }
      if (kernel->kind() != spec.work.kind) {
        return absl::InvalidArgumentError(absl::StrCat(
            "'", kernel->name, "' is registered as another kind of work than it is submitted as."));
      }
      if (spec.work.kind == TaskKind::kKernel) return CheckBlocks(spec, *kernel, block_tasks_max);
      return CheckLibraryArguments(spec, *kernel);
    case TaskKind::kMemcpy:
      return CheckCopy(spec.work.copy);
    case TaskKind::kOpaque:
      if (spec.work.host_function == nullptr) {
        return absl::InvalidArgumentError("Opaque work has no function to call.");
      }
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError("A task is of an unknown kind.");
}

}  // namespace gpushare::core
