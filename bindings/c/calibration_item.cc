// Reading of a kernel and its sample task; see calibration_item.h.

#include "bindings/c/calibration_item.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/handles.h"
#include "bindings/c/kernels.h"
#include "bindings/c/options.h"
#include "src/core/base/limits.h"

namespace gpushare::abi {
namespace {

absl::Status ReadTask(const gpushare_task_options& given, models::CalibrationItem& item) {
  gpushare_task_options task;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("task_options", &given, &task));
  if (task.arguments_size_bytes > core::kMaxArgumentBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The sample of kernel '", item.kernel.name, "' has ", task.arguments_size_bytes,
        " bytes of arguments, and the most is ", core::kMaxArgumentBytes, "."));
  }
  if (task.arguments_size_bytes > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("task_options.arguments", task.arguments));
    const auto* const bytes = static_cast<const unsigned char*>(task.arguments);
    item.arguments.assign(bytes, bytes + task.arguments_size_bytes);
  }
  item.block_tasks = task.block_tasks;
  item.grid_x = task.grid_x;
  item.grid_y = task.grid_y;
  item.grid_z = task.grid_z;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<models::CalibrationItem> ReadItem(const gpushare_kernel_options* kernel,
                                                 const gpushare_task_options* task,
                                                 const models::Profile& base) {
  gpushare_kernel_options options;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("kernel_options", kernel, &options));
  GPUSHARE_RETURN_IF_ERROR(CheckName("kernel_options.name", options.name));
  absl::StatusOr<core::KernelDesc> desc = KernelDescOf(options, base.FindKernel(options.name));
  if (!desc.ok()) return desc.status();
  models::CalibrationItem item;
  item.kernel = *std::move(desc);
  if (task != nullptr) GPUSHARE_RETURN_IF_ERROR(ReadTask(*task, item));
  return item;
}

}  // namespace gpushare::abi
