// The checks of launch_check.h.

#include "src/core/checks/launch_check.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/seams/launch_claims.h"

namespace gpushare::core {
namespace {

bool NeedsKernel(Form form) {
  switch (form) {
    case Form::kOriginal:
    case Form::kWorkers:
    case Form::kSlice:
    case Form::kFused:
    case Form::kGraph:
    case Form::kSegments:
      return true;
    case Form::kLibrary:  // a library call may come as declared time alone
    case Form::kMemcpy:
    case Form::kOpaque:
      return false;
  }
  return true;
}

absl::Status CheckCounter(int32_t counter) {
  if (counter >= 0 && counter < kMaxCounters) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("A worker launch names counter ", counter,
                                                 ", and there are ", kMaxCounters, "."));
}

absl::Status CheckBlocks(const LaunchRequest& request) {
  if (request.parts[0].block_count < 0 || request.parts[0].block_count > kMaxBlockTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch asks for ", request.parts[0].block_count, " block tasks, and 0 to ",
                     kMaxBlockTasks, " are allowed."));
  }
  if (request.block_begin < 0 || request.block_begin > kMaxBlockTasks) {
    return absl::InvalidArgumentError(absl::StrCat("A launch begins at block task ",
                                                   request.block_begin, ", and 0 to ",
                                                   kMaxBlockTasks, " are allowed."));
  }
  if (request.form == Form::kSlice && request.parts[0].block_count == 0) {
    return absl::InvalidArgumentError("A slice holds no block task.");
  }
  if (request.workers < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch asks for ", request.workers, " workers, and the least is 0."));
  }
  return ClaimsBlockTasks(request.form) ? CheckCounter(request.parts[0].counter) : absl::OkStatus();
}

absl::Status CheckSegments(const LaunchPart& part) {
  const KernelDesc& kernel = *part.work.kernel;
  if (kernel.kind() != TaskKind::kGraph) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name, "' is launched in segments, and it is no graph."));
  }
  if (part.block_count == kernel.segments() && part.block_count > 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Graph '", kernel.name, "' is launched in ",
                                                 part.block_count, " segments, and it has ",
                                                 kernel.segments(), "."));
}

absl::Status CheckArguments(const void* arguments, size_t bytes) {
  if (bytes > kMaxArgumentBytes) {
    return absl::InvalidArgumentError(absl::StrCat("A launch carries ", bytes,
                                                   " bytes of arguments, and the most is ",
                                                   kMaxArgumentBytes, "."));
  }
  if (bytes > 0 && arguments == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("A launch carries ", bytes, " bytes of arguments at no address."));
  }
  return absl::OkStatus();
}

// The pair, and the second part: the first is checked as any launch.
absl::Status CheckFused(const LaunchRequest& request) {
  if (request.fused == nullptr || !request.parts.full() ||
      request.parts[1].work.kernel == nullptr) {
    return absl::InvalidArgumentError("A fused launch needs its pair and its partner kernel.");
  }
  const LaunchPart& partner = request.parts[1];
  const KernelId tensor = request.fused->tensor_part;
  const KernelId cuda = request.fused->cuda_part;
  const KernelId first = request.parts[0].work.kernel->id;
  const KernelId second = partner.work.kernel->id;
  if (!(first == tensor && second == cuda) && !(first == cuda && second == tensor)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Fused kernel '", request.fused->name, "' is not one of kernels '",
        request.parts[0].work.kernel->name, "' and '", partner.work.kernel->name, "'."));
  }
  if (!partner.launch || partner.launch == request.parts[0].launch) {
    return absl::InvalidArgumentError(
        "The second part of a fused launch has no identifier of its own.");
  }
  if (partner.block_count < 0 || partner.block_count > kMaxBlockTasks) {
    return absl::InvalidArgumentError(absl::StrCat("A launch asks for ", partner.block_count,
                                                   " block tasks, and 0 to ", kMaxBlockTasks,
                                                   " are allowed."));
  }
  if (absl::Status status = CheckCounter(partner.counter); !status.ok()) return status;
  if (partner.counter == request.parts[0].counter) {
    return absl::InvalidArgumentError(absl::StrCat("Both parts of a fused launch name counter ",
                                                   partner.counter, ", and each needs its own."));
  }
  return CheckArguments(partner.work.arguments, partner.work.arguments_bytes);
}

}  // namespace

absl::Status CheckLaunchRequest(const LaunchRequest& request) {
  if (!request.parts[0].launch) return absl::InvalidArgumentError("A launch has no identifier.");
  if (static_cast<int>(request.form) > static_cast<int>(Form::kSegments)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Form ", static_cast<int>(request.form), " is not a form of launch."));
  }
  if (request.after_lane < kNoLane || request.after_lane >= kMaxLanes) {
    return absl::InvalidArgumentError(absl::StrCat("A launch comes after lane ", request.after_lane,
                                                   ", and there are at most ", kMaxLanes, "."));
  }
  if (NeedsKernel(request.form) && request.parts[0].work.kernel == nullptr) {
    return absl::InvalidArgumentError("A launch of this form needs a kernel, and has none.");
  }
  if (absl::Status status = CheckBlocks(request); !status.ok()) return status;
  if (absl::Status status =
          CheckArguments(request.parts[0].work.arguments, request.parts[0].work.arguments_bytes);
      !status.ok()) {
    return status;
  }
  if (request.form == Form::kSegments) {
    if (absl::Status status = CheckSegments(request.parts[0]); !status.ok()) return status;
  }
  if (request.form == Form::kFused) {
    if (absl::Status status = CheckFused(request); !status.ok()) return status;
  }
  if (request.form == Form::kMemcpy) {
    if (request.parts[0].work.copy.bytes < 0 || request.parts[0].work.copy.bytes > kMaxCopyBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("A copy moves ", request.parts[0].work.copy.bytes, " bytes, and 0 to ",
                       kMaxCopyBytes, " are allowed."));
    }
    if (request.parts[0].work.copy.direction == CopyDirection::kNone) {
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

absl::Status CheckNewPlace(PlaceIndex place, const PlaceSpec& spec, const DeviceProfile& profile) {
  if (place <= kWholeDevice || place >= kMaxPlaces) {
    return absl::InvalidArgumentError(absl::StrCat("A new place asks for index ", place,
                                                   ", and it must lie between ", kWholeDevice + 1,
                                                   " and ", kMaxPlaces - 1, "."));
  }
  return CheckPlaceSpec(spec, profile);
}

absl::Status PlaceExists(PlaceIndex place) {
  return absl::AlreadyExistsError(absl::StrCat("The device has place ", place, " already."));
}

absl::Status NoSuchPlace(PlaceIndex place) {
  return absl::FailedPreconditionError(
      absl::StrCat("Place ", place, " is asked to end, and the device has made no such place."));
}

}  // namespace gpushare::core
