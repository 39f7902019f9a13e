// A whole calibration: prepare, resume from a checkpoint, measure, complete; see calibration.h.
//
// work.h knows what is to be measured and what is known, stages.h measures it. Invariant: however a
// calibration ends, no launch is left in flight and what is measured is in the checkpoint.
// Threads: the caller's.

#include "src/calibration/calibration.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/calibration/device/device.h"
#include "src/calibration/launch/timing.h"
#include "src/calibration/profile/checkpoint.h"
#include "src/calibration/profile/profile.h"
#include "src/calibration/stages/checks.h"
#include "src/calibration/stages/plan.h"
#include "src/calibration/stages/report.h"
#include "src/calibration/stages/stages.h"
#include "src/calibration/stages/work.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/core/checks/kernel_check.h"
#include "src/core/state/lanes.h"

namespace gpushare::models {
namespace {

class Calibration {
 public:
  Calibration(core::Device& device, const Profile& base, const CalibrationOptions& options)
      : device_(device),
        base_(base),
        options_(options),
        timer_(device, options),
        work_(options),
        checkpoint_(device, options, work_.checkpoint()),
        report_(options, work_),
        stages_(timer_, lanes_, options, work_, checkpoint_, report_) {}

  absl::StatusOr<CalibrationResult> Run(absl::Span<const CalibrationItem> items) {
    absl::Status status = Prepare(items);
    if (status.ok()) status = Resume();
    if (status.ok()) status = checkpoint_.CheckWritable();
    if (status.ok()) status = MeasureDevice();
    if (status.ok()) status = stages_.Measure();
    if (!status.ok()) {
      timer_.Drain();
      checkpoint_.WriteUnsaved().IgnoreError();  // the first error counts
      return status;
    }
    return Complete();
  }

 private:
  // Places and lanes come first, because a graph is instantiated for every place.
  absl::Status Prepare(absl::Span<const CalibrationItem> items) {
    GPUSHARE_RETURN_IF_ERROR(lanes_.Create(device_, core::kMaxSplits));
    GPUSHARE_ASSIGN_OR_RETURN(std::vector<CalibrationItem> described, DescribeItems(items));
    work_.Assign(std::move(described), device_.capabilities());
    size_ = work_.size();
    GPUSHARE_ASSIGN_OR_RETURN(size_.kept_bytes,
                              CheckRecords(device_.capabilities().profile, base_, work_.items()));
    GPUSHARE_RETURN_IF_ERROR(CheckSize(size_));
    for (const CalibrationItem& item : work_.items()) {
      GPUSHARE_RETURN_IF_ERROR(device_.PrepareKernel(item.kernel));
    }
    return PrepareFused();
  }

  absl::StatusOr<std::vector<CalibrationItem>> DescribeItems(
      absl::Span<const CalibrationItem> items) {
    std::vector<CalibrationItem> described(items.begin(), items.end());
    uint32_t id = 1;
    for (CalibrationItem& item : described) {
      item.kernel.id = core::KernelId{id++};
      if (!device_.capabilities().eviction) item.kernel.evictable = false;
      if (!item.has_block_tasks()) item.kernel.evictable = false;
      GPUSHARE_RETURN_IF_ERROR(device_.DescribeKernel(item.kernel));
      core::FillUnknown(item.kernel);
      GPUSHARE_RETURN_IF_ERROR(core::CheckKernel(item.kernel));
    }
    return described;
  }

  absl::Status PrepareFused() {
    std::vector<CalibrationFused> prepared = options_.fused;
    uint32_t id = 1;
    for (CalibrationFused& fused : prepared) {
      if (fused.spills()) continue;
      fused.kernel.id = core::KernelId{id++};
      fused.kernel.tensor_part = work_.items()[fused.tensor_item].kernel.id;
      fused.kernel.cuda_part = work_.items()[fused.cuda_item].kernel.id;
      GPUSHARE_RETURN_IF_ERROR(device_.PrepareFusedKernel(fused.kernel));
    }
    work_.AssignFused(std::move(prepared));
    return absl::OkStatus();
  }

  absl::Status Resume() {
    if (!options_.resume || options_.output_path.empty()) return absl::OkStatus();
    absl::StatusOr<Checkpoint> found = LoadCheckpoint(CheckpointPath(options_.output_path));
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    if (!found.ok()) return found.status();
    const core::DeviceProfile& own = device_.capabilities().profile;
    if (found->device.gpu_model != own.gpu_model || found->device.sm_count != own.sm_count) {
      return absl::FailedPreconditionError(
          absl::StrCat("The checkpoint '", CheckpointPath(options_.output_path), "' is of '",
                       found->device.gpu_model, "' with ", found->device.sm_count,
                       " SMs, and this device is '", own.gpu_model, "' with ", own.sm_count, "."));
    }
    work_.ResumeFrom(*std::move(found), size_);
    return absl::OkStatus();
  }

  absl::Status MeasureDevice() {
    report_.Progress("device");
    if (!work_.checkpoint().device_measured) {
      DeviceMeter meter(timer_, lanes_, work_.items(), options_, report_.notes());
      GPUSHARE_ASSIGN_OR_RETURN(const core::DeviceProfile measured, meter.Measure());
      NoteRetaken(report_.notes(), "the device", timer_.TakeDropped());
      work_.SetDevice(ReadableDevice(measured, device_.capabilities().profile, report_.notes()),
                      std::move(meter.copies()));
      GPUSHARE_RETURN_IF_ERROR(checkpoint_.Write());
    }
    report_.Step();
    report_.Progress("device");
    return absl::OkStatus();
  }

  // A kernel whose slices and evictions were not reached is reported here, with what it has.
  void FinishKernels() {
    for (size_t i = 0; i < work_.items().size(); ++i) {
      const KernelMeasurement* const known = work_.KernelOf(i);
      if (known == nullptr) continue;
      const bool kept = work_.IsKept(i);
      result_.kernels.push_back(*known);
      result_.kept += kept ? 1 : 0;
      if (!known->rest_measured) report_.Progress(known->name, known, kept);
    }
  }

  void FinishPairs() {
    for (size_t i = 0; i < work_.CountOf(Stage::kPartitions); ++i) {
      const PairMeasurement* const known = work_.PairOf(i);
      if (known == nullptr || !work_.IsReady(Stage::kPartitions, i)) continue;
      const auto [lc, be] = work_.PartsOf(Stage::kPartitions, i);
      result_.pairs.push_back(*known);
      result_.pairs.back().lc = work_.ItemName(lc);
      result_.pairs.back().be = work_.ItemName(be);
    }
  }

  void FillProfile() {
    const Checkpoint& measured = work_.checkpoint();
    Profile& profile = result_.profile;
    profile.device = measured.device;
    for (size_t i = 0; i < work_.items().size(); ++i) {
      const KernelMeasurement* const known = work_.KernelOf(i);
      if (known == nullptr) continue;
      profile.kernels.push_back(Describe(work_.items()[i].kernel, *known, measured.device));
    }
    const bool same_gpu = TakeOverKernels(base_, profile);
    profile.calibration =
        MergeRecords(measured.record, result_.kernels, same_gpu ? &base_.calibration : nullptr);
    profile.learned = Learn(profile, result_.kernels, result_.pairs);
  }

  absl::StatusOr<CalibrationResult> Complete() {
    FinishKernels();
    FinishPairs();
    work_.SortRecords();
    for (size_t s = 0; s < kStages; ++s) report_.NoteNotReached(Stage(s), stages_.TotalIsSpent());
    work_.SetFusedVerdicts(report_.notes());
    result_.notes = std::move(report_.notes());
    result_.not_reached = std::move(report_.not_reached());
    FillProfile();
    if (options_.output_path.empty()) return std::move(result_);
    GPUSHARE_RETURN_IF_ERROR(SaveProfile(options_.output_path, result_.profile));
    if (result_.not_reached.empty()) {
      std::remove(CheckpointPath(options_.output_path).c_str());
    } else {
      GPUSHARE_RETURN_IF_ERROR(checkpoint_.Write());
    }
    return std::move(result_);
  }

  core::Device& device_;
  const Profile& base_;
  const CalibrationOptions& options_;
  LaunchTimer timer_;
  core::Lanes lanes_;
  CalibrationResult result_;
  CalibrationWork work_;
  CalibrationSize size_;
  CheckpointWriter checkpoint_;
  CalibrationReport report_;
  StageMeter stages_;
};

}  // namespace

absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckCalibration(items, options));
  return std::make_unique<Calibration>(device, base, options)->Run(items);
}

}  // namespace gpushare::models
