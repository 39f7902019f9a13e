// Passes, shares and single measurements. See calibration_stages.h.

#include "src/calibration/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/co_resident.h"
#include "src/calibration/fused.h"
#include "src/calibration/kernel.h"
#include "src/calibration/pair.h"
#include "src/calibration/profile.h"

namespace gpushare::models {
namespace {

// What a kernel gets however little time there is in all.
constexpr double kSecondsLeast = 0.01;
// Pairs and fused kernels take a fraction of a second each: the checkpoint, which is written whole,
// follows them at most so often.
constexpr core::TimeNs kKeepEveryNs = 1'000'000'000;

}  // namespace

absl::Status StageMeter::Measure() {
  for (size_t s = 0; s < kStages; ++s) told_[s].assign(work_.CountOf(Stage(s)), false);
  int32_t before = 0;
  do {
    before = recorded_;
    for (size_t s = 0; s < kStages; ++s) {
      if (absl::Status status = MeasureStage(Stage(s)); !status.ok()) return status;
    }
    // Shares end before the time does where a later stage has less to do than its own.
  } while (recorded_ > before && !TotalIsSpent() && work_.AnythingLeft());
  return absl::OkStatus();
}

absl::Status StageMeter::MeasureStage(Stage stage) {
  const size_t count = work_.CountOf(stage);
  for (size_t i = 0; i < kStages; ++i) left_of_[i] = work_.LeftOf(Stage(i));
  left_ = left_of_[static_cast<size_t>(stage)];
  stage_end_ns_ = std::numeric_limits<core::TimeNs>::max();
  if (bounded()) {
    const double seconds = SecondsOfStage(stage, SecondsLeft(), left_of_);
    stage_end_ns_ = NowNs() + static_cast<core::TimeNs>(seconds * 1e9);
  }
  const std::vector<size_t> order = work_.OrderOf(stage);
  for (size_t n = 0; n < count; ++n) {
    const size_t i = order[n];
    if (!work_.IsKnown(stage, i) && work_.IsReady(stage, i) && MayBegin(stage, i)) {
      if (absl::Status status = MeasureOne(stage, i); !status.ok()) return status;
    }
    if (work_.IsKnown(stage, i)) Tell(stage, i);
  }
  return keeper_.KeepUnsaved();
}

bool StageMeter::bounded() const { return options_.seconds_total > 0; }

double StageMeter::SecondsLeft() const {
  const auto spent_ns = static_cast<double>(NowNs() - begun_ns_);
  return options_.seconds_total - spent_ns * 1e-9;
}

bool StageMeter::TotalIsSpent() const { return bounded() && SecondsLeft() <= 0; }

// However short the time, one measurement is made that can be used: repeated calls come to an end.
// What takes no time is always done.
bool StageMeter::MayBegin(Stage stage, size_t i) const {
  if (stage == Stage::kFused && work_.fused()[i].local_bytes > 0) return true;
  return recorded_ == 0 || NowNs() < stage_end_ns_;
}

absl::Status StageMeter::MeasureOne(Stage stage, size_t i) {
  const std::string name = work_.NameOf(stage, i);
  if (stage == Stage::kKernels || stage == Stage::kRest) report_.Progress(name, nullptr);
  absl::Status status = MeasureAs(stage, i);
  report_.NoteDropped(timer_.TakeDropped(), absl::StrCat("'", name, "'"));
  left_ -= left_ > 0 ? 1 : 0;
  if (!status.ok()) return status;
  if (!work_.IsKnown(stage, i)) return absl::OkStatus();
  ++recorded_;
  return keeper_.KeepIfOlder(stage == Stage::kKernels ? 0 : kKeepEveryNs);
}

absl::Status StageMeter::MeasureAs(Stage stage, size_t i) {
  switch (stage) {
    case Stage::kKernels:
      return MeasureKernel(i);
    case Stage::kRest:
      return MeasureRest(i);
    case Stage::kPartitions:
      return MeasurePair(i);
    case Stage::kCoResident:
      return MeasureCoResident(i);
    case Stage::kFused:
      return MeasureFused(i);
  }
  return absl::InternalError("A calibration has no such stage.");
}

// Once for each measurement, from the checkpoint or made now.
void StageMeter::Tell(Stage stage, size_t i) {
  if (told_[static_cast<size_t>(stage)][i]) return;
  told_[static_cast<size_t>(stage)][i] = true;
  // A kernel is one step, and reported whole.
  const bool whole = stage == Stage::kRest;
  if (!whole) report_.Step();
  report_.Progress(work_.NameOf(stage, i), whole ? work_.KernelOf(i) : nullptr,
                   whole && work_.IsKept(i));
}

// Of one kernel: an equal part of what the stage has left. Never nothing: a first sample of each
// value is taken in any case. The meter shares it as if the kernel had both parts: `share` is this
// one's.
CalibrationOptions StageMeter::OptionsOfKernel(double share) const {
  CalibrationOptions options = options_;
  if (!bounded()) return options;
  const auto left_ns = static_cast<double>(stage_end_ns_ - NowNs());
  const double each = left_ns * 1e-9 / static_cast<double>(std::max<size_t>(1, left_)) / share;
  options.seconds_per_kernel = std::clamp(
      each, std::min(kSecondsLeast, options_.seconds_per_kernel), options_.seconds_per_kernel);
  return options;
}

absl::Status StageMeter::MeasureKernel(size_t i) {
  work_.Forget(i);
  const CalibrationOptions options = OptionsOfKernel(kBasicsShare);
  KernelMeter meter(timer_, lanes_, work_.items()[i], options, report_.notes());
  absl::StatusOr<KernelMeasurement> measured = meter.MeasureBasics();
  if (!measured.ok()) return measured.status();
  KeepKernel(i, *measured);
  return absl::OkStatus();
}

absl::Status StageMeter::MeasureRest(size_t i) {
  const CalibrationOptions options = OptionsOfKernel(1 - kBasicsShare);
  KernelMeter meter(timer_, lanes_, work_.items()[i], options, report_.notes());
  absl::StatusOr<KernelMeasurement> measured = meter.MeasureRest(*work_.KernelOf(i));
  if (!measured.ok()) return measured.status();
  KeepKernel(i, *measured);
  return absl::OkStatus();
}

void StageMeter::KeepKernel(size_t i, const KernelMeasurement& measured) {
  if (!report_.Usable(measured.name, work_.CheckMeasurement(i, measured))) return;
  work_.AddKernel(i, measured);
}

absl::Status StageMeter::MeasurePair(size_t i) {
  const auto [lc, be] = work_.PartsOf(Stage::kPartitions, i);
  PairMeter meter(timer_, lanes_, options_);
  CalibrationItem background = work_.items()[be];
  background.kernel.simulation.block_task_ns = work_.KernelOf(be)->block_task_ns;
  absl::StatusOr<PairMeasurement> pair =
      meter.Measure(work_.items()[lc], *work_.KernelOf(lc), background);
  if (!pair.ok()) return pair.status();
  const size_t dropped = std::erase_if(pair->speeds, [](const PairMeasurement::Speed& speed) {
    return !(speed.beside > 0) || !std::isfinite(speed.beside) || !std::isfinite(speed.alone);
  });
  if (dropped > 0) {
    report_.notes().push_back(absl::StrCat("Of '", work_.NameOf(Stage::kPartitions, i), "' ",
                                           dropped, " impossible speeds were dropped."));
  }
  work_.AddPair(i, *std::move(pair));
  return absl::OkStatus();
}

absl::Status StageMeter::MeasureCoResident(size_t i) {
  const auto [first, second] = work_.PartsOf(Stage::kCoResident, i);
  CoResidentMeter meter(timer_, lanes_, options_);
  absl::StatusOr<CoResidentRecord> record = meter.Measure(
      work_.items()[first], *work_.KernelOf(first), work_.items()[second], *work_.KernelOf(second));
  if (!record.ok()) return record.status();
  CalibrationRecord alone;
  alone.co_resident.push_back(*record);
  if (report_.Usable(work_.NameOf(Stage::kCoResident, i),
                     CheckReadable(work_.checkpoint().device, alone))) {
    work_.AddCoResident(*std::move(record));
  }
  return absl::OkStatus();
}

absl::StatusOr<FusedRecord> StageMeter::MeasureOneFused(const CalibrationFused& fused) {
  const CalibrationItem& tensor = work_.items()[fused.tensor_item];
  const CalibrationItem& cuda = work_.items()[fused.cuda_item];
  if (fused.local_bytes == 0) {
    FusedMeter meter(timer_, lanes_, options_);
    return meter.Measure(fused.kernel, tensor, *work_.KernelOf(fused.tensor_item), cuda,
                         *work_.KernelOf(fused.cuda_item));
  }
  FusedRecord record;
  record.name = fused.kernel.name;
  record.tensor = tensor.kernel.name;
  record.cuda = cuda.kernel.name;
  record.tensor_blocks = fused.kernel.tensor_blocks;
  record.cuda_blocks = fused.kernel.cuda_blocks;
  record.verdict = FusedVerdict::kSpills;
  return record;
}

absl::Status StageMeter::MeasureFused(size_t i) {
  absl::StatusOr<FusedRecord> record = MeasureOneFused(work_.fused()[i]);
  if (!record.ok()) return record.status();
  CalibrationRecord alone;
  alone.fused.push_back(*record);
  if (report_.Usable(work_.NameOf(Stage::kFused, i),
                     CheckReadable(work_.checkpoint().device, alone))) {
    work_.AddFused(*std::move(record));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models
