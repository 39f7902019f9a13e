// Observation: device, guarantees, stats, metrics. Threads: any; works on copies.

#include "absl/strings/str_cat.h"
#include "bindings/c/convert.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/seams/sliceable.h"

namespace gpushare::abi {
namespace {

gpushare_device_info DeviceInfoOf(const RuntimeObject& runtime) {
  const core::DeviceCapabilities& capabilities = runtime.scheduler->capabilities();
  const core::DeviceProfile& profile = capabilities.profile;
  gpushare_device_info out = GPUSHARE_DEVICE_INFO_INIT;
  out.simulated = capabilities.simulated ? 1 : 0;
  out.name = runtime.device_name.c_str();
  out.profile = runtime.profile_name.c_str();
  out.policy = runtime.policy_name.c_str();
  out.virtual_time = capabilities.virtual_time ? 1 : 0;
  out.partitions = capabilities.partitions ? 1 : 0;
  out.eviction = capabilities.eviction ? 1 : 0;
  out.timestamps = capabilities.timestamps ? 1 : 0;
  out.sm_count = profile.sm_count;
  out.sm_granularity = profile.sm_granularity;
  out.lanes_max = capabilities.lanes_max;
  out.places_max = capabilities.places_max;
  out.threads_per_sm = profile.threads_per_sm;
  out.registers_per_sm = profile.registers_per_sm;
  out.shared_memory_per_sm_bytes = profile.shared_memory_per_sm_bytes;
  out.blocks_per_sm = profile.blocks_per_sm;
  out.launch_latency_ns = profile.launch_latency_ns;
  out.completion_latency_ns = profile.completion_latency_ns;
  out.eviction_write_latency_ns = profile.eviction_write_latency_ns;
  out.pinned_bytes_per_ns = profile.pinned_bytes_per_ns;
  return out;
}

// The guarantees that some kernel of this kind can have: the answer without a kernel.
absl::StatusOr<uint32_t> GuaranteesOf(const core::Scheduler& scheduler, gpushare_task_kind kind,
                                      const KernelObject* kernel) {
  const core::DeviceCapabilities& device = scheduler.capabilities();
  if (kernel != nullptr) {
    if (kind != GPUSHARE_TASK_DEFAULT && kind != ToC(kernel->kind)) {
      return absl::InvalidArgumentError(
          absl::StrCat("The kernel is of kind ", gpushare_task_kind_name(ToC(kernel->kind)),
                       ", and guarantees are asked for ", gpushare_task_kind_name(kind), "."));
    }
    kind = ToC(kernel->kind);
  }
  const bool confinable = device.partitions && (kernel == nullptr || kernel->confinable);
  uint32_t out = 0;
  if (device.timestamps) out |= GPUSHARE_GUARANTEE_TIMESTAMPED;
  switch (kind) {
    case GPUSHARE_TASK_KERNEL:
      if (device.eviction && (kernel == nullptr || kernel->evictable)) {
        out |= GPUSHARE_GUARANTEE_EVICTABLE;
      }
      if (confinable) out |= GPUSHARE_GUARANTEE_CONFINABLE;
      if (kernel == nullptr || core::IsSliceable(*scheduler.FindKernel(kernel->id))) {
        out |= GPUSHARE_GUARANTEE_DIVISIBLE;
      }
      return out;
    case GPUSHARE_TASK_GRAPH:
    case GPUSHARE_TASK_LIBRARY:
      if (confinable) out |= GPUSHARE_GUARANTEE_CONFINABLE;
      return out;
    case GPUSHARE_TASK_MEMCPY:
      return out | GPUSHARE_GUARANTEE_DIVISIBLE;
    case GPUSHARE_TASK_OPAQUE:
      return out;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("The kind of task is ", kind, ", and it must lie between 1 and 5."));
  }
}

}  // namespace
}  // namespace gpushare::abi

using gpushare::abi::Enter;

gpushare_status gpushare_device_info_get(gpushare_runtime* runtime,
                                         gpushare_device_info* out_info) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return gpushare::abi::WriteResult("device_info", gpushare::abi::DeviceInfoOf(*object),
                                      out_info);
  });
}

gpushare_status gpushare_guarantees(gpushare_runtime* runtime, gpushare_task_kind kind,
                                    gpushare_kernel* kernel, uint32_t* out_guarantees) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_guarantees", out_guarantees));
    const gpushare::abi::KernelObject* kernel_object = nullptr;
    if (kernel != nullptr) {
      kernel_object = gpushare::abi::Find(kernel);
      if (kernel_object == nullptr) return gpushare::abi::Bad(kernel);
      if (kernel_object->runtime.get() != object) {
        return absl::InvalidArgumentError("The kernel is registered in another runtime.");
      }
    }
    const auto guarantees = gpushare::abi::GuaranteesOf(*object->scheduler, kind, kernel_object);
    if (!guarantees.ok()) return guarantees.status();
    *out_guarantees = *guarantees;
    return absl::OkStatus();
  });
}

gpushare_status gpushare_runtime_stats_get(gpushare_runtime* runtime,
                                           gpushare_runtime_stats* out_stats) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    const gpushare::core::Scheduler& scheduler = *object->scheduler;
    return gpushare::abi::WriteResult(
        "runtime_stats",
        gpushare::abi::ToC(scheduler.Stats(), scheduler.capabilities().simulated,
                           scheduler.AppCount()),
        out_stats);
  });
}

gpushare_status gpushare_app_stats_get(gpushare_app* app, gpushare_app_stats* out_stats) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, app);
    const auto stats = object->runtime->scheduler->StatsOf(object->id);
    if (!stats.ok()) return stats.status();
    return gpushare::abi::WriteResult("app_stats", gpushare::abi::ToC(*stats), out_stats);
  });
}

gpushare_status gpushare_app_guarantee_get(gpushare_app* app,
                                           gpushare_app_guarantee* out_guarantee) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, app);
    const auto guarantee = object->runtime->scheduler->GuaranteeOf(object->id);
    if (!guarantee.ok()) return guarantee.status();
    return gpushare::abi::WriteResult("app_guarantee", gpushare::abi::ToC(*guarantee),
                                      out_guarantee);
  });
}

gpushare_status gpushare_metrics_text(gpushare_runtime* runtime, char* buffer,
                                      size_t buffer_size_bytes, size_t* out_size_bytes) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return gpushare::abi::CopyText(object->scheduler->OpenMetrics(), buffer, buffer_size_bytes,
                                   out_size_bytes);
  });
}
