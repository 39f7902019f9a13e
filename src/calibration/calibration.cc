// The whole calibration: prepare, go on from a checkpoint, measure, complete. See calibration.h.
//
// What there is to measure and what is known is in calibration_work.h, how it is measured in
// calibration_stages.h. Invariant: whatever ends a calibration, no launch is left in flight and
// what is measured is in the checkpoint. Threads: the caller's.

#include "src/calibration/calibration.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/calibration/checkpoint.h"
#include "src/calibration/checks.h"
#include "src/calibration/device.h"
#include "src/calibration/plan.h"
#include "src/calibration/profile.h"
#include "src/calibration/report.h"
#include "src/calibration/stages.h"
#include "src/calibration/timing.h"
#include "src/calibration/work.h"
#include "src/core/base/limits.h"
#include "src/core/seams/kernel_check.h"
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
        keeper_(device, options, work_.checkpoint()),
        report_(options, work_, result_),
        stages_(timer_, lanes_, options, work_, keeper_, report_) {}

  absl::StatusOr<CalibrationResult> Run(absl::Span<const CalibrationItem> items) {
    absl::Status status = Prepare(items);
    if (status.ok()) status = Resume();
    if (status.ok()) status = keeper_.Try();
    if (status.ok()) status = MeasureDevice();
    if (status.ok()) status = stages_.Measure();
    if (!status.ok()) {
      timer_.Drain();
      keeper_.KeepUnsaved().IgnoreError();  // the first error counts
      return status;
    }
    return Complete();
  }

 private:
  // Places and lanes first: a graph is instantiated for every place there is.
  absl::Status Prepare(absl::Span<const CalibrationItem> items) {
    if (absl::Status status = lanes_.Create(device_, core::kMaxSplits); !status.ok()) {
      return status;
    }
    absl::StatusOr<std::vector<CalibrationItem>> described = DescribeItems(items);
    if (!described.ok()) return described.status();
    work_.Assign(*std::move(described), device_.capabilities());
    size_ = work_.size();
    absl::StatusOr<int64_t> bytes =
        CheckRecords(device_.capabilities().profile, base_, work_.items());
    if (!bytes.ok()) return bytes.status();
    size_.kept_bytes = *bytes;
    if (absl::Status status = CheckSize(size_); !status.ok()) return status;
    for (const CalibrationItem& item : work_.items()) {
      if (absl::Status status = device_.PrepareKernel(item.kernel); !status.ok()) return status;
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
      if (item.kernel.kind != core::TaskKind::kKernel) item.kernel.evictable = false;
      if (absl::Status status = device_.DescribeKernel(item.kernel); !status.ok()) return status;
      core::FillUnknown(item.kernel);
      if (absl::Status status = core::CheckKernel(item.kernel); !status.ok()) return status;
    }
    return described;
  }

  absl::Status PrepareFused() {
    std::vector<CalibrationFused> prepared = options_.fused;
    uint32_t id = 1;
    for (CalibrationFused& fused : prepared) {
      if (fused.local_bytes > 0) continue;
      fused.kernel.id = core::KernelId{id++};
      fused.kernel.tensor_part = work_.items()[fused.tensor_item].kernel.id;
      fused.kernel.cuda_part = work_.items()[fused.cuda_item].kernel.id;
      if (absl::Status status = device_.PrepareFusedKernel(fused.kernel); !status.ok()) {
        return status;
      }
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
    work_.GoOnFrom(*std::move(found), size_);
    return absl::OkStatus();
  }

  absl::Status MeasureDevice() {
    report_.Progress("device", nullptr);
    if (!work_.checkpoint().device_measured) {
      DeviceMeter meter(timer_, lanes_, work_.items(), options_, report_.notes());
      absl::StatusOr<core::DeviceProfile> measured = meter.Measure();
      if (!measured.ok()) return measured.status();
      report_.NoteDropped(timer_.TakeDropped(), "the device");
      work_.SetDevice(ReadableDevice(*measured, device_.capabilities().profile, report_.notes()),
                      meter.copies());
      if (absl::Status status = keeper_.Keep(); !status.ok()) return status;
    }
    report_.Step();
    report_.Progress("device", nullptr);
    return absl::OkStatus();
  }

  // Kernels without slices and evictions are reported here, with what they have.
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
    // A profile is of one GPU: records of another are not carried over.
    const bool same = base_.device.gpu_model == profile.device.gpu_model;
    for (const core::KernelDesc& kernel : base_.kernels) {
      if (same && profile.FindKernel(kernel.name) == nullptr) profile.kernels.push_back(kernel);
    }
    profile.calibration =
        MergeRecords(measured.record, result_.kernels, same ? &base_.calibration : nullptr);
    profile.learned = Learn(profile, result_.kernels, result_.pairs);
  }

  absl::StatusOr<CalibrationResult> Complete() {
    FinishKernels();
    FinishPairs();
    work_.SortRecords();
    for (size_t s = 0; s < kStages; ++s) report_.NoteNotReached(Stage(s), stages_.TotalIsSpent());
    work_.Judge(result_.notes);
    FillProfile();
    if (options_.output_path.empty()) return std::move(result_);
    if (absl::Status status = SaveProfile(options_.output_path, result_.profile); !status.ok()) {
      return status;
    }
    if (result_.not_reached.empty()) {
      std::remove(CheckpointPath(options_.output_path).c_str());
    } else if (absl::Status status = keeper_.Keep(); !status.ok()) {
      return status;
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
  CheckpointKeeper keeper_;
  CalibrationReport report_;
  StageMeter stages_;
};

}  // namespace

absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options) {
  if (absl::Status status = CheckCalibration(items, options); !status.ok()) return status;
  return std::make_unique<Calibration>(device, base, options)->Run(items);
}

}  // namespace gpushare::models
