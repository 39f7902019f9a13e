// Calibration over the ABI: reads the options, opens a device for this call only, converts results.
//
// Threads: the caller's. The device lives for the call.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings/c/built_in_profile.h"
#include "bindings/c/calibration_item.h"
#include "bindings/c/devices.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/kernels.h"
#include "bindings/c/log.h"
#include "bindings/c/options.h"
#include "src/calibration/calibration.h"
#include "src/core/base/application_call.h"
#include "src/core/base/file_io.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/profile/profile.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::abi {
namespace {

constexpr double kNsPerSecond = 1e9;

static_assert(static_cast<int>(models::Intensity::kUnknown) == GPUSHARE_INTENSITY_UNKNOWN);
static_assert(static_cast<int>(models::Intensity::kCompute) == GPUSHARE_INTENSITY_COMPUTE);
static_assert(static_cast<int>(models::Intensity::kMemory) == GPUSHARE_INTENSITY_MEMORY);

absl::Status CheckTime(absl::string_view field, int64_t value) {
  if (value >= 0 && value <= core::kMaxDurationNs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("calibration_options.", field, " is ", value,
                                                 " ns, and it must lie between 0 and ",
                                                 core::kMaxDurationNs, " ns."));
}

// Longer than any one duration of the library: every kernel has its own.
absl::Status CheckTotalTime(int64_t value) {
  constexpr int64_t kMost = int64_t{7 * 24 * 3600} * 1'000'000'000;
  if (value >= 0 && value <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("calibration_options.total_time_ns is ", value,
                                                 " ns, and it must lie between 0 and ", kMost,
                                                 " ns."));
}

absl::Status CheckOptions(const gpushare_calibration_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckText("calibration_options.output_path", options.output_path));
  GPUSHARE_RETURN_IF_ERROR(CheckNotNull("calibration_options.items", options.items));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("calibration_options.resume", options.resume));
  GPUSHARE_RETURN_IF_ERROR(CheckTime("kernel_time_ns", options.kernel_time_ns));
  GPUSHARE_RETURN_IF_ERROR(CheckTime("hang_limit_ns", options.hang_limit_ns));
  GPUSHARE_RETURN_IF_ERROR(CheckTotalTime(options.total_time_ns));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("calibration_options", options.reserved));
  if (options.samples_path != nullptr) {
    GPUSHARE_RETURN_IF_ERROR(CheckText("calibration_options.samples_path", options.samples_path));
    if (core::IsSameFile(options.output_path, options.samples_path)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The profile would replace the samples: calibration_options.output_path and samples_path "
          "are both '",
          options.samples_path, "'."));
    }
  }
  if (options.fused_count > 0) {
    GPUSHARE_RETURN_IF_ERROR(CheckNotNull("calibration_options.fused", options.fused));
  }
  if (options.fused_count > models::kCalibrationFusedMax) {
    return absl::InvalidArgumentError(absl::StrCat("calibration_options.fused_count is ",
                                                   options.fused_count, ", and the most is ",
                                                   models::kCalibrationFusedMax, "."));
  }
  if (options.device_ordinal < 0) {
    return absl::InvalidArgumentError(absl::StrCat("calibration_options.device_ordinal is ",
                                                   options.device_ordinal,
                                                   ", and ordinals start at 0."));
  }
  if (options.item_count < 1 || options.item_count > uint32_t{core::kMaxKernels}) {
    return absl::InvalidArgumentError(
        absl::StrCat("calibration_options.item_count is ", options.item_count,
                     ", and it must lie between 1 and ", core::kMaxKernels, "."));
  }
  return absl::OkStatus();
}

absl::StatusOr<models::Profile> BaseProfile(const gpushare_calibration_options& options) {
  if (options.profile_path == nullptr) return models::ReadProfile(BuiltInProfile());
  GPUSHARE_RETURN_IF_ERROR(CheckText("calibration_options.profile_path", options.profile_path));
  return models::LoadProfile(options.profile_path);
}

absl::StatusOr<models::CalibrationFused> ReadFused(const gpushare_calibration_fused& given) {
  gpushare_fused_kernel_options fused;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("fused_kernel_options", given.fused, &fused));
  GPUSHARE_RETURN_IF_ERROR(CheckName("fused_kernel_options.name", fused.name));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("calibration_fused", given.reserved));
  if (fused.tensor_part != nullptr || fused.cuda_part != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Fused kernel '", fused.name,
                     "' names kernels of a runtime, and a calibration has none: its parts are the "
                     "items that tensor_item and cuda_item say."));
  }
  // The simulated device runs on these, as on the records of kernels.
  absl::StatusOr<core::FusedKernelDesc> desc = FusedShapeOf(fused);
  if (!desc.ok()) return desc.status();
  models::CalibrationFused out;
  out.kernel = *std::move(desc);
  out.tensor_item = given.tensor_item;
  out.cuda_item = given.cuda_item;
  out.local_bytes = given.local_bytes;
  return out;
}

// The core's progress as the callback's structs.
class Reporter {
 public:
  Reporter(gpushare_calibration_callback callback, void* user) : callback_(callback), user_(user) {}

  // What the callback threw, "" for nothing. It is not called again.
  const std::string& thrown() const { return thrown_; }

  void Report(const models::CalibrationProgress& progress) {
    done_ = progress.done;
    total_ = progress.total;
    if (callback_ == nullptr) return;
    gpushare_kernel_calibration kernel = GPUSHARE_KERNEL_CALIBRATION_INIT;
    if (progress.kernel != nullptr) Fill(*progress.kernel, progress.kept, kernel);
    Call(progress.what.c_str(), progress.kernel != nullptr ? &kernel : nullptr, nullptr);
  }

  void Note(const std::string& note) {
    if (callback_ != nullptr) Call("device", nullptr, note.c_str());
  }

 private:
  void Fill(const models::KernelMeasurement& measured, bool kept,
            gpushare_kernel_calibration& out) {
    speed_.clear();
    for (const core::SpeedPoint& point : measured.speed) {
      speed_.push_back({point.sms, 0, point.speed});
    }
    out.kind = static_cast<gpushare_task_kind>(measured.kind) + 1;
    out.name = measured.name.c_str();
    out.block_tasks = measured.block_tasks;
    out.solo_ns = measured.solo_ns;
    out.worker_solo_ns = measured.worker_solo_ns;
    out.block_task_ns = measured.block_task_ns;
    out.eviction_p50_ns = measured.eviction_p50_ns;
    out.eviction_p99_ns = measured.eviction_p99_ns;
    out.block_task_spread = measured.block_task_spread;
    out.worker_overhead = measured.worker_overhead;
    out.saturating_occupancy = measured.saturating_occupancy;
    out.speed = speed_.empty() ? nullptr : speed_.data();
    out.knees = measured.knees.empty() ? nullptr : measured.knees.data();
    out.speed_count = static_cast<uint32_t>(speed_.size());
    out.knee_count = static_cast<uint32_t>(measured.knees.size());
    out.workers_per_sm_max = measured.workers_per_sm;
    out.kept = kept ? 1 : 0;
    out.slice_block_tasks = measured.slice_block_tasks;
    out.slice_overhead = measured.slice_overhead;
    out.workers_per_sm_least = measured.workers_per_sm_least;
    out.intensity = static_cast<gpushare_intensity>(measured.intensity);
  }

  void Call(const char* what, const gpushare_kernel_calibration* kernel, const char* note) {
    gpushare_calibration_progress progress = GPUSHARE_CALIBRATION_PROGRESS_INIT;
    progress.done = done_;
    progress.total = total_;
    progress.what = what;
    progress.kernel = kernel;
    progress.note = note;
    if (!thrown_.empty()) return;
    const CallbackScope scope;
    thrown_ = core::ThrownBy([&] { callback_(user_, &progress); });
  }

  const gpushare_calibration_callback callback_;
  void* const user_;
  std::vector<gpushare_speed_point> speed_;
  int32_t done_ = 0;
  int32_t total_ = 0;
  std::string thrown_;
};

models::CalibrationOptions OptionsOf(const gpushare_calibration_options& options,
                                     Reporter& reporter) {
  models::CalibrationOptions out;
  if (options.repeats != 0) out.repeats = options.repeats;
  if (options.evictions != 0) out.evictions = options.evictions;
  if (options.kernel_time_ns != 0) {
    out.seconds_per_kernel = static_cast<double>(options.kernel_time_ns) / kNsPerSecond;
  }
  out.seconds_total = static_cast<double>(options.total_time_ns) / kNsPerSecond;
  if (options.slice_overhead_max != 0) out.slice_overhead_max = options.slice_overhead_max;
  if (options.hang_limit_ns != 0) out.hang_limit_ns = options.hang_limit_ns;
  if (options.seed != 0) out.seed = options.seed;
  out.buffers = {options.device_buffer, options.pinned_buffer, options.pageable_buffer,
                 options.buffer_size_bytes};
  out.output_path = options.output_path;
  out.resume = options.resume == 1;
  out.cancelled = [cancel = options.cancel, &reporter] {
    return !reporter.thrown().empty() || (cancel != nullptr && *cancel != 0);
  };
  out.progress = [&reporter](const models::CalibrationProgress& progress) {
    reporter.Report(progress);
  };
  return out;
}

absl::Status Calibrate(const gpushare_calibration_options& options, Reporter& reporter) {
  GPUSHARE_RETURN_IF_ERROR(CheckOptions(options));
  absl::StatusOr<models::Profile> base = BaseProfile(options);
  if (!base.ok()) return base.status();
  std::vector<models::CalibrationItem> items(options.item_count);
  for (uint32_t i = 0; i < options.item_count; ++i) {
    GPUSHARE_ASSIGN_OR_RETURN(items[i],
                              ReadItem(options.items[i].kernel, options.items[i].task, *base));
  }
  models::CalibrationOptions known = OptionsOf(options, reporter);
  for (uint32_t i = 0; i < options.fused_count; ++i) {
    absl::StatusOr<models::CalibrationFused> fused = ReadFused(options.fused[i]);
    if (!fused.ok()) return fused.status();
    known.fused.push_back(*std::move(fused));
  }
  DeviceChoice choice;
  ChooseDevice(options.device, choice);
  choice.ordinal = options.device_ordinal;
  choice.seed = options.seed == 0 ? 1 : options.seed;
  choice.sim_tier = options.sim_tier == nullptr ? "" : options.sim_tier;
  choice.sim_faults = options.sim_faults == nullptr ? "" : options.sim_faults;
  choice.profile = base->device;
  absl::StatusOr<OpenDevice> device = MakeDevice(choice, Log(nullptr, nullptr));
  if (!device.ok()) return device.status();
  for (const models::CalibrationItem& item : items) {
    if (!RunsRecords(device->name) || item.kernel.simulation.present) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", item.kernel.name, "' has no simulation record, and the profile '",
                     base->device.name, "' knows no kernel of that name."));
  }
  std::optional<models::SamplesWriter> samples;
  if (options.samples_path != nullptr) {
    const core::DeviceCapabilities& own = device->device->capabilities();
    absl::StatusOr<models::SamplesWriter> writer = models::SamplesWriter::Open(
        options.samples_path, {own.profile.gpu_model, own.profile.sm_count, own.simulated});
    if (!writer.ok()) return writer.status();
    samples = *std::move(writer);
    known.sample = [&samples](const models::SampleRow& row) { samples->Add(row); };
    known.cancelled = [&samples, asked = std::move(known.cancelled)] {
      return !samples->ok() || asked();
    };
  }
  absl::StatusOr<models::CalibrationResult> result =
      models::Calibrate(*device->device, *base, items, known);
  if (samples.has_value()) GPUSHARE_RETURN_IF_ERROR(samples->Close());
  if (!result.ok()) return result.status();
  if (samples.has_value() && samples->left_out() > 0) {
    reporter.Note(absl::StrCat(samples->left_out(),
                               " rows of samples had impossible values and were left out."));
  }
  for (const std::string& note : result->notes) reporter.Note(note);
  return absl::OkStatus();
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_calibrate(const gpushare_calibration_options* options,
                                   gpushare_calibration_callback progress, void* user) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CallbackScope::Refuse("gpushare_calibrate"));
    gpushare_calibration_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("calibration_options", options, &known));
    gpushare::abi::WatchForks();
    gpushare::abi::Reporter reporter(progress, user);
    absl::Status status = gpushare::abi::Calibrate(known, reporter);
    if (reporter.thrown().empty()) return status;
    return absl::InternalError(absl::StrCat("The progress callback threw ", reporter.thrown(),
                                            ", and the calibration stopped."));
  });
}
