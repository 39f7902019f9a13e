// The checks of launch_check.h.

#include "src/core/launch_check.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "src/core/limits.h"

namespace gpushare::core {
namespace {

bool NeedsKernel(Form form) {
  switch (form) {
    case Form::kOriginal:
    case Form::kWorkers:
    case Form::kSlice:
    case Form::kFused:
    case Form::kGraph:
      return true;
    case Form::kLibrary:  // a library call may come as declared time alone
    case Form::kMemcpy:
    case Form::kOpaque:
      return false;
  }
  return true;
}

absl::Status CheckBlocks(const LaunchRequest& request) {
  if (request.block_count < 0 || request.block_count > kMaxBlockTasks) {
    return absl::InvalidArgumentError(absl::StrCat("A launch asks for ", request.block_count,
                                                   " block tasks, and 0 to ", kMaxBlockTasks,
                                                   " are allowed."));
  }
  if (request.block_begin < 0 || request.block_begin > kMaxBlockTasks) {
    return absl::InvalidArgumentError(absl::StrCat("A launch begins at block task ",
                                                   request.block_begin, ", and 0 to ",
                                                   kMaxBlockTasks, " are allowed."));
  }
  if (request.form == Form::kSlice && request.block_count == 0) {
    return absl::InvalidArgumentError("A slice holds no block task.");
  }
  if (request.workers < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch asks for ", request.workers, " workers, and the least is 0."));
  }
  if (request.form == Form::kWorkers && (request.counter < 0 || request.counter >= kMaxCounters)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A worker launch names counter ", request.counter, ", and there are ", kMaxCounters, "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLaunchRequest(const LaunchRequest& request) {
  if (!request.launch) return absl::InvalidArgumentError("A launch has no identifier.");
  if (static_cast<int>(request.form) > static_cast<int>(Form::kOpaque)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Form ", static_cast<int>(request.form), " is not a form of launch."));
  }
  if (NeedsKernel(request.form) && request.kernel == nullptr) {
    return absl::InvalidArgumentError("A launch of this form needs a kernel, and has none.");
  }
  if (request.form == Form::kFused &&
      (request.fused == nullptr || request.fused_partner == nullptr)) {
    return absl::InvalidArgumentError("A fused launch needs its pair and its partner kernel.");
  }
  if (absl::Status status = CheckBlocks(request); !status.ok()) return status;
  if (request.arguments_bytes > kMaxArgumentBytes) {
    return absl::InvalidArgumentError(absl::StrCat("A launch carries ", request.arguments_bytes,
                                                   " bytes of arguments, and the most is ",
                                                   kMaxArgumentBytes, "."));
  }
  if (request.arguments_bytes > 0 && request.arguments == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("A launch carries ", request.arguments_bytes,
                                                   " bytes of arguments at no address."));
  }
  if (request.form == Form::kMemcpy) {
    if (request.copy.bytes < 0 || request.copy.bytes > kMaxCopyBytes) {
      return absl::InvalidArgumentError(absl::StrCat("A copy moves ", request.copy.bytes,
                                                     " bytes, and 0 to ", kMaxCopyBytes,
                                                     " are allowed."));
    }
    if (request.copy.direction == CopyDirection::kNone) {
      return absl::InvalidArgumentError("A copy has no direction.");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlaceSpec(const PlaceSpec& spec, const DeviceProfile& profile) {
  const int32_t groups = profile.Groups();
  if (spec.first_group < 0 || spec.groups < 0 || spec.first_group > groups ||
      spec.groups > groups - spec.first_group) {
    return absl::InvalidArgumentError(absl::StrCat("A place covers ", spec.groups,
                                                   " groups of SMs from group ", spec.first_group,
                                                   ", and the device has ", groups, "."));
  }
  const int32_t left_over = spec.with_remainder ? profile.Remainder() : 0;
  if (spec.groups == 0 && left_over == 0) {
    return absl::InvalidArgumentError("A place covers no SM.");
  }
  return absl::OkStatus();
}

}  // namespace gpushare::core
