// Fused kernels; see fused.h.

#include "src/calibration/pairs/fused.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/launch/repeat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"
#include "src/models/fused/fused_curve.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// The load ratios at which Tacker trains a pair, and one between: without it noise decides where
// the two lines meet (docs/models.md).
constexpr double kLoadRatios[] = {0.1, 0.2, 1, 1.8, 1.9};
// Of a pair whose lines do not bend.
constexpr double kAnyLoadRatio = 1;
// The load ratio of the CD part's whole sample task: the largest of them, and room for rounding.
constexpr double kLoadMost = 2;
// A smaller saving is the noise of two measurements; such a pair is not fused.
constexpr double kSavingLeast = 0.01;
constexpr int kRepeatsMost = 3;
// Where the curves that judge a model have their points: between those that train it.
constexpr double kCurveFrom = 0.3;
constexpr double kCurveStep = 0.1;
constexpr int kCurveSteps = 15;
// Launches of a part alone, of which the time of one among others counts.
constexpr int kAloneBatch = 4;

// Of the time one after the other: 0.1 where the fused kernel takes 10 % less than both parts.
double SavingAt(const FusedPoint& point) {
  return 1 - point.duration_ratio / (1 + point.load_ratio);
}

// For a message: to 1 / `steps`.
double Rounded(double value, double steps) { return std::round(value * steps) / steps; }

// Without its times.
SampleRow RowOf(const core::FusedKernelDesc& fused, const FusedPart& tensor, const FusedPart& cuda,
                double load) {
  SampleRow row;
  row.what = SampleKind::kFused;
  row.kernel = fused.name;
  row.tensor = tensor.item.kernel.name;
  row.neighbour = cuda.item.kernel.name;
  row.block_tasks = tensor.block_tasks;
  row.neighbour_block_tasks = cuda.block_tasks;
  row.tensor_blocks = fused.tensor_blocks;
  row.cuda_blocks = fused.cuda_blocks;
  row.load_percent = static_cast<int32_t>(std::lround(100 * load));
  return row;
}

}  // namespace

FusedRecord RecordOf(const core::FusedKernelDesc& fused, const CalibrationItem& tensor,
                     const CalibrationItem& cuda) {
  FusedRecord record;
  record.name = fused.name;
  record.tensor = tensor.kernel.name;
  record.cuda = cuda.kernel.name;
  record.tensor_blocks = fused.tensor_blocks;
  record.cuda_blocks = fused.cuda_blocks;
  record.verdict = FusedVerdict::kSpills;
  return record;
}

// Both parts alone, each in its ordinary form among several launches, and the fused kernel run in
// turn, so that all see the same clocks.
absl::StatusOr<FusedPoint> FusedMeter::MeasurePoint(const core::FusedKernelDesc& fused,
                                                    const FusedPart& tensor, const FusedPart& cuda,
                                                    double load) {
  const core::LaunchRequest together = FusedRequest(fused, tensor, cuda);
  const auto alone_ns = [&](const FusedPart& part) {
    return timer_.TimePerLaunch(SliceRequest(part.item, plain_lane_, 0, part.block_tasks),
                                kAloneBatch);
  };
  const auto take = [&]() -> absl::StatusOr<Sample<5>> {
    GPUSHARE_ASSIGN_OR_RETURN(const double tensor_ns, alone_ns(tensor));
    GPUSHARE_ASSIGN_OR_RETURN(const double cuda_ns, alone_ns(cuda));
    GPUSHARE_ASSIGN_OR_RETURN(const double fused_ns, timer_.RunFused(together));
    return Sample<5>{cuda_ns / tensor_ns, fused_ns / tensor_ns, tensor_ns, cuda_ns, fused_ns};
  };
  GPUSHARE_ASSIGN_OR_RETURN(auto repeats,
                            RepeatsOf<5>(timer_, std::min(options_.repeats, kRepeatsMost), take));
  if (options_.sample) {
    SampleRow row = RowOf(fused, tensor, cuda, load);
    row.alone_ns = std::move(repeats[2]);
    row.neighbour_ns = std::move(repeats[3]);
    row.ns = std::move(repeats[4]);
    options_.sample(row);
  }
  return FusedPoint{Median(std::move(repeats[0])), Median(std::move(repeats[1]))};
}

absl::StatusOr<FusedRecord> FusedMeter::Measure(const core::FusedKernelDesc& fused,
                                                const CalibrationItem& tensor,
                                                const KernelMeasurement& tensor_alone,
                                                const CalibrationItem& cuda,
                                                const KernelMeasurement& cuda_alone) {
  FusedRecord record = RecordOf(fused, tensor, cuda);
  record.verdict = FusedVerdict::kNeverGains;
  const auto tensor_ns = static_cast<double>(std::max<int64_t>(1, tensor_alone.solo_ns));
  const auto cuda_ns = static_cast<double>(std::max<int64_t>(1, cuda_alone.solo_ns));
  // As much of the TC part as takes half as long as the CD part's sample task.
  const double share = std::min(1.0, cuda_ns / kLoadMost / tensor_ns);
  const auto tensor_tasks = static_cast<double>(tensor.block_tasks);
  const auto cuda_tasks = static_cast<double>(cuda.block_tasks);
  const FusedPart tensor_part{tensor, lane_,
                              std::max<int64_t>(1, std::llround(tensor_tasks * share))};
  const double own_ns = tensor_ns * static_cast<double>(tensor_part.block_tasks) / tensor_tasks;
  const auto measure_at = [&](double load) -> absl::StatusOr<FusedPoint> {
    const double tasks = std::round(load * own_ns / cuda_ns * cuda_tasks);
    const FusedPart cuda_part{cuda, partner_lane_,
                              static_cast<int64_t>(std::clamp(tasks, 1.0, cuda_tasks))};
    return MeasurePoint(fused, tensor_part, cuda_part, load);
  };
  for (const double load : kLoadRatios) {
    GPUSHARE_ASSIGN_OR_RETURN(const FusedPoint point, measure_at(load));
    record.points.push_back(point);
  }
  if (options_.sample && IsHeldOut(absl::StrCat("curve ", fused.name))) {
    for (int step = 0; step < kCurveSteps; ++step) {
      const double load = kCurveFrom + kCurveStep * step;
      GPUSHARE_RETURN_IF_ERROR(measure_at(load).status());
    }
  }
  const FusedCurve curve = FitFusedCurve(record.points);
  const double inflection = curve.bend > 0 ? curve.inflection : kAnyLoadRatio;
  GPUSHARE_ASSIGN_OR_RETURN(const FusedPoint opportune, measure_at(inflection));
  record.points.push_back(opportune);
  record.opportune_load_ratio = opportune.load_ratio;
  record.opportune_duration_ratio = opportune.duration_ratio;
  record.saving = SavingAt(opportune);
  for (const FusedPoint& point : record.points) {
    record.saving = std::max(record.saving, SavingAt(point));
  }
  return record;
}

void SetVerdicts(std::vector<FusedRecord>& fused, Notes& notes) {
  std::map<std::pair<std::string, std::string>, FusedRecord*> best;
  std::map<std::pair<std::string, std::string>, int> dropped;
  for (FusedRecord& record : fused) {
    FusedRecord*& first = best[{record.tensor, record.cuda}];
    ++dropped[{record.tensor, record.cuda}];
    if (record.verdict == FusedVerdict::kSpills) continue;
    const bool gains = record.saving >= kSavingLeast;
    record.verdict = gains ? FusedVerdict::kSlower : FusedVerdict::kNeverGains;
    if (gains && (first == nullptr || record.saving > first->saving)) first = &record;
  }
  for (const auto& [pair, record] : best) {
    if (record == nullptr) {
      notes.push_back(absl::StrCat("No fused kernel of '", pair.first, "' and '", pair.second,
                                   "' is faster than one after the other, of ", dropped[pair],
                                   ": the pair is not fused."));
      continue;
    }
    record->verdict = FusedVerdict::kKept;
    notes.push_back(
        absl::StrCat("Of '", pair.first, "' and '", pair.second, "' the fused kernel '",
                     record->name, "' is kept, and ", dropped[pair] - 1,
                     " others are dropped: it saves ", Rounded(100 * record->saving, 10),
                     " % of one after the other; both parts end together at a ", "load ratio of ",
                     Rounded(record->opportune_load_ratio, 100), "."));
  }
}

}  // namespace gpushare::models
