// Passes, shares and single measurements; see stages.h.

#include "src/calibration/stages/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/kernel/kernel.h"
#include "src/calibration/pairs/co_resident.h"
#include "src/calibration/pairs/fused.h"
#include "src/calibration/pairs/pair.h"
#include "src/calibration/profile/profile.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

// A kernel gets this time however little there is in all.
constexpr double kSecondsLeast = 0.01;
// Pairs and fused kernels take a fraction of a second each, and the checkpoint is written whole: it
// follows them at most this often.
constexpr core::TimeNs kWriteEveryNs = 1'000'000'000;

}  // namespace

absl::Status StageMeter::Measure() {
  for (size_t s = 0; s < kStages; ++s) reported_[s].assign(work_.CountOf(Stage(s)), false);
  int32_t before = 0;
  do {
    before = recorded_;
    for (size_t s = 0; s < kStages; ++s) {
      GPUSHARE_RETURN_IF_ERROR(MeasureStage(Stage(s)));
    }
    // Time is left over when a later stage has less to do than its share.
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
      GPUSHARE_RETURN_IF_ERROR(MeasureOne(stage, i));
    }
    if (work_.IsKnown(stage, i)) ReportOnce(stage, i);
  }
  return checkpoint_.WriteUnsaved();
}

bool StageMeter::bounded() const { return options_.seconds_total > 0; }

double StageMeter::SecondsLeft() const {
  const auto spent_ns = static_cast<double>(NowNs() - begun_ns_);
  return options_.seconds_total - spent_ns * 1e-9;
}

bool StageMeter::TotalIsSpent() const { return bounded() && SecondsLeft() <= 0; }

// However short the time, one usable measurement is made, so that repeated calls come to an end.
// A fused kernel that spills takes no time: it is always noted.
bool StageMeter::MayBegin(Stage stage, size_t i) const {
  if (stage == Stage::kFused && work_.fused()[i].spills()) return true;
  return recorded_ == 0 || NowNs() < stage_end_ns_;
}

absl::Status StageMeter::MeasureOne(Stage stage, size_t i) {
  const std::string name = work_.NameOf(stage, i);
  if (stage == Stage::kKernels || stage == Stage::kRest) report_.Progress(name);
  const absl::Status status = MeasureAs(stage, i);
  NoteRetaken(report_.notes(), absl::StrCat("'", name, "'"), timer_.TakeDropped());
  left_ -= left_ > 0 ? 1 : 0;
  GPUSHARE_RETURN_IF_ERROR(status);
  if (!work_.IsKnown(stage, i)) return absl::OkStatus();
  ++recorded_;
  return checkpoint_.WriteIfOlder(stage == Stage::kKernels ? 0 : kWriteEveryNs);
}

absl::Status StageMeter::MeasureAs(Stage stage, size_t i) {
  switch (stage) {
    case Stage::kKernels:
      return MeasureBasicsOf(i);
    case Stage::kRest:
      return MeasureRestOf(i);
    case Stage::kPartitions:
      return MeasurePair(i);
    case Stage::kCoResident:
      return MeasureCoResident(i);
    case Stage::kFused:
      return MeasureFused(i);
  }
  return absl::InternalError("A calibration has no such stage.");
}

// Once for each measurement, whether it comes from the checkpoint or was made now.
void StageMeter::ReportOnce(Stage stage, size_t i) {
  if (reported_[static_cast<size_t>(stage)][i]) return;
  reported_[static_cast<size_t>(stage)][i] = true;
  // A kernel is one step, and its measurement is reported when it is complete.
  const bool complete = stage == Stage::kRest;
  if (!complete) report_.Step();
  report_.Progress(work_.NameOf(stage, i), complete ? work_.KernelOf(i) : nullptr,
                   complete && work_.IsKept(i));
}

// Each kernel gets an equal part of the stage's time, and never nothing: a first sample of each
// value is taken in any case. The stages of a kernel divide its time as if basics and rest were
// measured together; `share` is what the stages of this call get.
CalibrationOptions StageMeter::OptionsOfKernel(double share) const {
  CalibrationOptions options = options_;
  if (!bounded()) return options;
  const auto left_ns = static_cast<double>(stage_end_ns_ - NowNs());
  const double each = left_ns * 1e-9 / static_cast<double>(std::max<size_t>(1, left_)) / share;
  options.seconds_per_kernel = std::clamp(
      each, std::min(kSecondsLeast, options_.seconds_per_kernel), options_.seconds_per_kernel);
  return options;
}

absl::Status StageMeter::MeasureBasicsOf(size_t i) {
  work_.Forget(i);
  const CalibrationOptions options = OptionsOfKernel(kBasicsShare);
  GPUSHARE_ASSIGN_OR_RETURN(
      const KernelMeasurement measured,
      MeasureBasics({timer_, lanes_, work_.items()[i], options, report_.notes()}));
  KeepKernel(i, measured);
  return absl::OkStatus();
}

absl::Status StageMeter::MeasureRestOf(size_t i) {
  const CalibrationOptions options = OptionsOfKernel(1 - kBasicsShare);
  GPUSHARE_ASSIGN_OR_RETURN(
      const KernelMeasurement measured,
      MeasureRest({timer_, lanes_, work_.items()[i], options, report_.notes()},
                  *work_.KernelOf(i)));
  KeepKernel(i, measured);
  return absl::OkStatus();
}

void StageMeter::KeepKernel(size_t i, const KernelMeasurement& measured) {
  if (NoteIfUnusable(report_.notes(), measured.name, work_.CheckMeasurement(i, measured))) {
    work_.AddKernel(i, measured);
  }
}

absl::Status StageMeter::MeasurePair(size_t i) {
  const auto [lc, be] = work_.PartsOf(Stage::kPartitions, i);
  PairMeter meter(timer_, lanes_, options_, work_.items()[lc], *work_.KernelOf(lc),
                  work_.items()[be], *work_.KernelOf(be));
  GPUSHARE_ASSIGN_OR_RETURN(PairMeasurement pair, meter.Measure());
  const size_t dropped = std::erase_if(pair.speeds, [](const PairMeasurement::Speed& speed) {
    return !(speed.beside > 0) || !std::isfinite(speed.beside) || !std::isfinite(speed.alone);
  });
  NoteImpossible(report_.notes(), absl::StrCat("'", work_.NameOf(Stage::kPartitions, i), "'"),
                 dropped, "speeds");
  work_.AddPair(i, std::move(pair));
  return absl::OkStatus();
}

bool StageMeter::IsReadable(const std::string& name, const CalibrationRecord& records) {
  return NoteIfUnusable(report_.notes(), name, CheckReadable(work_.checkpoint().device, records));
}

absl::Status StageMeter::MeasureCoResident(size_t i) {
  const auto [first, second] = work_.PartsOf(Stage::kCoResident, i);
  CoResidentMeter meter(timer_, lanes_, options_);
  GPUSHARE_ASSIGN_OR_RETURN(CoResidentRecord record,
                            meter.Measure(work_.items()[first], *work_.KernelOf(first),
                                          work_.items()[second], *work_.KernelOf(second)));
  CalibrationRecord alone;
  alone.co_resident = {record};
  if (IsReadable(work_.NameOf(Stage::kCoResident, i), alone)) {
    work_.AddCoResident(std::move(record));
  }
  return absl::OkStatus();
}

absl::StatusOr<FusedRecord> StageMeter::MeasureOneFused(const CalibrationFused& fused) {
  const CalibrationItem& tensor = work_.items()[fused.tensor_item];
  const CalibrationItem& cuda = work_.items()[fused.cuda_item];
  if (fused.spills()) return RecordOf(fused.kernel, tensor, cuda);
  FusedMeter meter(timer_, lanes_, options_);
  return meter.Measure(fused.kernel, tensor, *work_.KernelOf(fused.tensor_item), cuda,
                       *work_.KernelOf(fused.cuda_item));
}

absl::Status StageMeter::MeasureFused(size_t i) {
  GPUSHARE_ASSIGN_OR_RETURN(FusedRecord record, MeasureOneFused(work_.fused()[i]));
  CalibrationRecord alone;
  alone.fused = {record};
  if (IsReadable(work_.NameOf(Stage::kFused, i), alone)) {
    work_.AddFused(std::move(record));
  }
  return absl::OkStatus();
}

}  // namespace gpushare::models
