// Pre-runs over the ABI: reads the options, opens a device for this call only, converts counters.
//
// Threads: the caller's. The device lives for the call.

#include "src/calibration/pre_run/pre_run.h"

#include "absl/strings/str_cat.h"
#include "bindings/c/built_in_profile.h"
#include "bindings/c/calibration_item.h"
#include "bindings/c/devices.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/kernel_counters.h"
#include "bindings/c/log.h"
#include "bindings/c/options.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/profile/profile.h"

namespace gpushare::abi {
namespace {

absl::Status Check(const gpushare_pre_run_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckNotNull("pre_run_options.kernel", options.kernel));
  GPUSHARE_RETURN_IF_ERROR(CheckNotNull("pre_run_options.task", options.task));
  if (options.device_ordinal < 0) {
    return absl::InvalidArgumentError(absl::StrCat("pre_run_options.device_ordinal is ",
                                                   options.device_ordinal,
                                                   ", and ordinals start at 0."));
  }
  if (options.hang_limit_ns >= 0 && options.hang_limit_ns <= core::kMaxDurationNs) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("pre_run_options.hang_limit_ns is ", options.hang_limit_ns,
                   " ns, and it must lie between 0 and ", core::kMaxDurationNs, " ns."));
}

absl::StatusOr<gpushare_kernel_counters> PreRun(const gpushare_pre_run_options& options) {
  GPUSHARE_RETURN_IF_ERROR(Check(options));
  GPUSHARE_ASSIGN_OR_RETURN(const models::Profile base, models::ReadProfile(BuiltInProfile()));
  GPUSHARE_ASSIGN_OR_RETURN(const models::CalibrationItem item,
                            ReadItem(options.kernel, options.task, base));
  DeviceChoice choice;
  ChooseDevice(options.device, choice);
  choice.ordinal = options.device_ordinal;
  choice.profile = base.device;
  GPUSHARE_ASSIGN_OR_RETURN(const OpenDevice device, MakeDevice(choice, Log(nullptr, nullptr)));
  if (device.device->capabilities().simulated || device.name == absl::string_view("null")) {
    return absl::UnimplementedError(absl::StrCat("The device '", device.name,
                                                 "' has no counters: a pre-run of kernel '",
                                                 item.kernel.name, "' needs device 'cuda'."));
  }
  models::CalibrationOptions known;
  if (options.hang_limit_ns != 0) known.hang_limit_ns = options.hang_limit_ns;
  GPUSHARE_ASSIGN_OR_RETURN(const models::PreRunResult result,
                            models::PreRun(*device.device, item, known));
  return CountersToC(result.counters, result.saturating_occupancy);
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_kernel_pre_run(const gpushare_pre_run_options* options,
                                        gpushare_kernel_counters* out_counters) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_kernel_pre_run"));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_counters", out_counters));
    gpushare_pre_run_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("pre_run_options", options, &known));
    gpushare::abi::WatchForks();
    const absl::StatusOr<gpushare_kernel_counters> counters = gpushare::abi::PreRun(known);
    if (!counters.ok()) return counters.status();
    return gpushare::abi::WriteResult("kernel_counters", *counters, out_counters);
  });
}
