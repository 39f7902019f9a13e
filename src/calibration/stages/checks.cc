// What a calibration refuses; see checks.h.

#include "src/calibration/stages/checks.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "src/calibration/profile/profile.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

// A week: longer is a unit error.
constexpr double kSecondsTotalMax = 7 * 24 * 3600;
// Of a load or a duration, as the reader of profiles accepts it.
constexpr double kRatioMax = 1e6;

absl::Status CheckOptions(const CalibrationOptions& options) {
  if (options.repeats < 1 || options.repeats > kCalibrationRepeatsMax) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration repeats ", options.repeats,
                                                   " times, and 1 to ", kCalibrationRepeatsMax,
                                                   " are allowed."));
  }
  if (options.evictions < 1 || options.evictions > kEvictionSamplesMax) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration asks for ", options.evictions,
                                                   " evictions, and 1 to ", kEvictionSamplesMax,
                                                   " are allowed."));
  }
  if (!(options.seconds_per_kernel > 0 && options.seconds_per_kernel <= 3600)) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration gives each kernel ",
                                                   options.seconds_per_kernel,
                                                   " s, and it must be above 0, at most 3600."));
  }
  if (options.hang_limit_ns <= 0 || options.hang_limit_ns > core::kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat("The hang limit is ", options.hang_limit_ns,
                                                   " ns, and it must be above 0, at most ",
                                                   core::kMaxDurationNs, " ns."));
  }
  if (options.buffers.bytes < 0 || options.buffers.bytes > core::kMaxCopyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("The copy buffers have ", options.buffers.bytes,
                                                   " bytes, and 0 to ", core::kMaxCopyBytes,
                                                   " are allowed."));
  }
  return absl::OkStatus();
}

absl::Status CheckBounds(const CalibrationOptions& options) {
  if (!(options.seconds_total >= 0 && options.seconds_total <= kSecondsTotalMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The calibration has ", options.seconds_total,
        " s in all, and it must lie between 0 (no bound) and ", kSecondsTotalMax, "."));
  }
  if (!(options.slice_overhead_max > 0 && options.slice_overhead_max <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("A slice may cost ", options.slice_overhead_max,
                                                   " of a kernel's time, and it must be above 0, "
                                                   "at most 1."));
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_directory(path, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The profile is to be written to '", path, "', and that is a folder."));
}

// As the reader of profiles accepts it.
absl::Status CheckName(const std::string& name, const char* of) {
  if (!name.empty() && name.size() <= static_cast<size_t>(core::kMaxNameBytes)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("The name '", name, "' of ", of, " has ",
                                                 name.size(), " bytes, and 1 to ",
                                                 core::kMaxNameBytes, " are allowed."));
}

absl::Status CheckParts(absl::Span<const CalibrationItem> items, const CalibrationFused& fused) {
  const std::string& name = fused.kernel.name;
  for (const size_t index : {fused.tensor_item, fused.cuda_item}) {
    if (index >= items.size()) {
      return absl::InvalidArgumentError(absl::StrCat("A part of fused kernel '", name, "' is item ",
                                                     index, ", and there are ", items.size(), "."));
    }
    if (!items[index].has_block_tasks()) {
      return absl::InvalidArgumentError(absl::StrCat("The part '", items[index].kernel.name,
                                                     "' of fused kernel '", name,
                                                     "' has no block tasks."));
    }
  }
  if (fused.tensor_item == fused.cuda_item) {
    return absl::InvalidArgumentError(
        absl::StrCat("Both parts of fused kernel '", name, "' are item ", fused.tensor_item, ", '",
                     items[fused.tensor_item].kernel.name, "', and they must be two kernels."));
  }
  const CalibrationItem& cuda = items[fused.cuda_item];
  if (!fused.spills() && cuda.block_tasks < kFusedBlockTasksLeast) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The sample of '", cuda.kernel.name, "', the CD part of fused kernel '", name, "', has ",
        cuda.block_tasks, " block tasks, and the load ratios from 0.1 to 1.9 need at least ",
        kFusedBlockTasksLeast, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const CalibrationFused& fused) {
  const std::string& name = fused.kernel.name;
  constexpr int32_t kBlocksMax = 1 << 20;  // what a profile holds; no SM holds a thousandth of it
  for (const int32_t blocks : {fused.kernel.tensor_blocks, fused.kernel.cuda_blocks}) {
    if (blocks >= 1 && blocks <= kBlocksMax) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Fused kernel '", name, "' has ", fused.kernel.tensor_blocks, " and ",
        fused.kernel.cuda_blocks, " blocks of its parts, and 1 to ", kBlocksMax, " are allowed."));
  }
  if (fused.local_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("Fused kernel '", name, "' has ",
                                                   fused.local_bytes,
                                                   " bytes of local memory a thread, and the least "
                                                   "is 0."));
  }
  for (const double ratio :
       {fused.kernel.opportune_load_ratio, fused.kernel.opportune_duration_ratio}) {
    if (ratio > 0 && ratio <= kRatioMax) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Fused kernel '", name, "' has an opportune ratio of ", ratio,
                     ", and it must be above 0, at most ", kRatioMax, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckFused(absl::Span<const CalibrationItem> items,
                        absl::Span<const CalibrationFused> all) {
  if (all.size() > kCalibrationFusedMax) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration has ", all.size(),
                                                   " fused kernels, and the most is ",
                                                   kCalibrationFusedMax, "."));
  }
  std::set<std::string> names;
  for (const CalibrationFused& fused : all) {
    const std::string& name = fused.kernel.name;
    GPUSHARE_RETURN_IF_ERROR(CheckName(name, "a fused kernel"));
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Fused kernel '", name, "' stands twice in the calibration."));
    }
    GPUSHARE_RETURN_IF_ERROR(CheckParts(items, fused));
    GPUSHARE_RETURN_IF_ERROR(CheckShape(fused));
  }
  return absl::OkStatus();
}

absl::Status CheckItems(absl::Span<const CalibrationItem> items) {
  if (items.empty() || items.size() > static_cast<size_t>(core::kMaxKernels)) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration has ", items.size(),
                                                   " kernels, and 1 to ", core::kMaxKernels,
                                                   " are allowed."));
  }
  std::set<std::string> names;
  for (const CalibrationItem& item : items) {
    GPUSHARE_RETURN_IF_ERROR(CheckName(item.kernel.name, "a kernel"));
    if (!names.insert(item.kernel.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Kernel '", item.kernel.name, "' stands twice in the calibration."));
    }
    if (item.has_block_tasks() &&
        (item.block_tasks < 1 || item.block_tasks > core::kMaxBlockTasks)) {
      return absl::InvalidArgumentError(
          absl::StrCat("The sample of kernel '", item.kernel.name, "' has ", item.block_tasks,
                       " block tasks, and the limits are 1 and ", core::kMaxBlockTasks, "."));
    }
    if (item.arguments.size() > core::kMaxArgumentBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("The sample of kernel '", item.kernel.name, "' has ", item.arguments.size(),
                       " bytes of arguments, and the most is ", core::kMaxArgumentBytes, "."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCalibration(absl::Span<const CalibrationItem> items,
                              const CalibrationOptions& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckOptions(options));
  GPUSHARE_RETURN_IF_ERROR(CheckBounds(options));
  GPUSHARE_RETURN_IF_ERROR(CheckOutput(options.output_path));
  GPUSHARE_RETURN_IF_ERROR(CheckItems(items));
  return CheckFused(items, options.fused);
}

absl::StatusOr<int64_t> CheckRecords(const core::DeviceProfile& device, const Profile& base,
                                     absl::Span<const CalibrationItem> items) {
  Profile unmeasured;
  unmeasured.device = device;
  for (const CalibrationItem& item : items) {
    unmeasured.kernels.push_back(DescribeUnmeasured(item.kernel, device));
    absl::Status status = CheckReadable(device, unmeasured.kernels.back());
    if (status.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat("No profile can hold the kernel '",
                                                   item.kernel.name, "': ", status.message()));
  }
  if (TakeOverKernels(base, unmeasured)) unmeasured.calibration = base.calibration;
  if (unmeasured.kernels.size() > static_cast<size_t>(core::kMaxKernels)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The calibration has ", items.size(), " kernels, and with those of the base profile ",
        unmeasured.kernels.size(), ", and a profile holds ", core::kMaxKernels, "."));
  }
  return static_cast<int64_t>(FormatProfile(unmeasured).size());
}

absl::Status CheckSize(const CalibrationSize& size) {
  const std::string asked = absl::StrCat("The calibration asks for ", size.kernels, " kernels, ",
                                         size.pairs, " pairs on partitions, ", size.co_resident,
                                         " co-resident pairs and ", size.fused, " fused kernels");
  const int64_t learned = size.kernels * kKernelLineBytes + size.pairs * kPairLineBytes;
  if (learned > kLearnedBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(asked, ", for which its checkpoint may need ", learned,
                     " bytes of measurements, and the most is ", kLearnedBytesMax,
                     ": calibrate fewer kernels at a time."));
  }
  const int64_t profile = size.kept_bytes + learned + size.kernels * kKernelRecordBytes +
                          size.co_resident * kCoResidentRecordBytes +
                          size.fused * kFusedRecordBytes;
  if (profile <= kProfileBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(asked, ", for which its profile may need ", profile, " bytes, and the most is ",
                   kProfileBytesMax, ": calibrate fewer kernels at a time."));
}

}  // namespace gpushare::models
