// Opens CUPTI and says what its failures mean; see cupti.h.

#include "src/cuda/counters/cupti.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/status.h"
#include "src/cuda/driver/library_opener.h"

namespace gpushare::cuda::cupti {
namespace {

// What a result means for whoever asked for counters.
struct Meaning {
  int result;
  absl::StatusCode code;
  absl::string_view text;
};
constexpr absl::string_view kAllow =
    "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM); load its "
    "module "
    "with NVreg_RestrictProfilingToAdminUsers=0, or run with the capability CAP_SYS_ADMIN";
constexpr Meaning kMeanings[] = {
    {kInsufficientPrivileges, absl::StatusCode::kPermissionDenied, kAllow},
    {kVirtualDevicePrivileges, absl::StatusCode::kPermissionDenied,
     "profiling is not enabled for this virtual GPU; its host's administrator can enable it"},
    {kHardwareBusy, absl::StatusCode::kFailedPrecondition,
     "another profiler uses the GPU's counters; end it first"},
    {kMultipleSubscribers, absl::StatusCode::kFailedPrecondition,
     "another profiler of this process uses CUPTI; end it first"},
    {kOldProfilerInitialised, absl::StatusCode::kFailedPrecondition,
     "another profiler of this process uses CUPTI's older interface; end it first"},
    {kNotSupported, absl::StatusCode::kUnavailable, "this GPU or its driver cannot be profiled"},
    {kVirtualDevice, absl::StatusCode::kUnavailable, "this virtual GPU cannot be profiled"},
    {kConfidentialComputing, absl::StatusCode::kUnavailable,
     "a GPU in confidential computing mode cannot be profiled"},
    {kCmpDevice, absl::StatusCode::kUnavailable, "a GPU for mining cannot be profiled"},
    {kMigDevice, absl::StatusCode::kUnavailable, "a MIG instance cannot be profiled"},
    {kWslDevice, absl::StatusCode::kUnavailable, "this version of WSL cannot profile its GPU"},
    {kInvalidChipName, absl::StatusCode::kUnavailable,
     "this version of CUPTI does not know the GPU; a newer one may"},
};

}  // namespace

absl::StatusOr<Calls> Open(const char* file) {
  GPUSHARE_ASSIGN_OR_RETURN(void* const library, OpenLibrary(file, "counting what a kernel does"));
  Calls calls;
  const auto resolve = [&](const char* name, auto& function) {
    return ResolveFunction(library, file, name, function);
  };
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerInitialize", calls.initialize));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerDeInitialize", calls.deinitialize));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiDeviceGetChipName", calls.chip_name));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerGetCounterAvailability", calls.availability));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerHostInitialize", calls.host_initialize));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerHostDeinitialize", calls.host_deinitialize));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerHostConfigAddMetrics", calls.add_metrics));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerHostGetConfigImageSize", calls.config_size));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerHostGetConfigImage", calls.config_image));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiProfilerHostEvaluateToGpuValues", calls.evaluate));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerEnable", calls.enable));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerDisable", calls.disable));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerGetCounterDataSize", calls.data_size));
  GPUSHARE_RETURN_IF_ERROR(
      resolve("cuptiRangeProfilerCounterDataImageInitialize", calls.data_image));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerSetConfig", calls.set_config));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerStart", calls.start));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerStop", calls.stop));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerPushRange", calls.push_range));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerPopRange", calls.pop_range));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiRangeProfilerDecodeData", calls.decode));
  GPUSHARE_RETURN_IF_ERROR(resolve("cuptiGetResultString", calls.result_string));
  return calls;
}

absl::Status StatusOf(const Calls& calls, int result, const char* call) {
  if (result == kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  calls.result_string(result, &name);
  const std::string answer =
      absl::StrCat(call, " answers ", result, " (", name == nullptr ? "unknown" : name, ")");
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result != result) continue;
    return {meaning.code,
            absl::StrCat("The kernel is not counted: ", meaning.text, ". ", answer, ".")};
  }
  return absl::InternalError(absl::StrCat("The kernel is not counted: ", answer, "."));
}

}  // namespace gpushare::cuda::cupti
