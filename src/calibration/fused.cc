// Fused kernels; see fused.h.

#include "src/calibration/fused.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/repeat.h"
#include "src/calibration/request.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

// The load ratios at which Tacker trains a pair.
constexpr double kLoadRatios[] = {0.1, 0.2, 1.8, 1.9};
// The load ratio of the CD part's whole sample task: the largest of them, and room for rounding.
constexpr double kLoadMost = 2;
// Where the slopes differ by less, noise decides where the lines cross.
constexpr double kSlopesDiffer = 0.05;
// A smaller saving is the noise of two measurements; such a pair is not fused.
constexpr double kSavingLeast = 0.01;
constexpr int kRepeatsMost = 3;
// Launches of a part alone, of which the time of one among others counts.
constexpr int kAloneBatch = 4;

// Of the time one after the other: 0.1 where the fused kernel takes 10 % less than both parts.
double SavingAt(const FusedPoint& point) {
  return 1 - point.duration_ratio / (1 + point.load_ratio);
}

// For a message: to 1 / `steps`.
double Rounded(double value, double steps) { return std::round(value * steps) / steps; }

}  // namespace

double CrossingOf(absl::Span<const FusedPoint> points) {
  const auto slope = [](const FusedPoint& a, const FusedPoint& b) {
    const double wide = b.load_ratio - a.load_ratio;
    return wide > 0 ? (b.duration_ratio - a.duration_ratio) / wide : 0;
  };
  const double low = points[1].load_ratio;
  const double high = points[2].load_ratio;
  // Load ratios are measured: with few and long block tasks noise may put them in the wrong order.
  if (!(low < high)) return (low + high) / 2;
  const double before = slope(points[0], points[1]);
  const double beyond = slope(points[2], points[3]);
  if (std::abs(beyond - before) < kSlopesDiffer) return (low + high) / 2;
  const double at_zero_before = points[0].duration_ratio - before * points[0].load_ratio;
  const double at_zero_beyond = points[2].duration_ratio - beyond * points[2].load_ratio;
  return std::clamp((at_zero_before - at_zero_beyond) / (beyond - before), low, high);
}

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
                                                    const FusedPart& tensor,
                                                    const FusedPart& cuda) {
  const core::LaunchRequest together = FusedRequest(fused, tensor, cuda);
  const auto alone_ns = [&](const FusedPart& part) {
    return timer_.TimePerLaunch(SliceRequest(part.item, plain_lane_, 0, part.block_tasks),
                                kAloneBatch);
  };
  const auto take = [&]() -> absl::StatusOr<Sample<2>> {
    GPUSHARE_ASSIGN_OR_RETURN(const double tensor_ns, alone_ns(tensor));
    GPUSHARE_ASSIGN_OR_RETURN(const double cuda_ns, alone_ns(cuda));
    GPUSHARE_ASSIGN_OR_RETURN(const double fused_ns, timer_.RunFused(together));
    return Sample<2>{cuda_ns / tensor_ns, fused_ns / tensor_ns};
  };
  GPUSHARE_ASSIGN_OR_RETURN(const auto medians,
                            MediansOf<2>(timer_, std::min(options_.repeats, kRepeatsMost), take));
  return FusedPoint{medians[0], medians[1]};
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
  const auto measure_at = [&](double load) -> absl::Status {
    const double tasks = std::round(load * own_ns / cuda_ns * cuda_tasks);
    const FusedPart cuda_part{cuda, partner_lane_,
                              static_cast<int64_t>(std::clamp(tasks, 1.0, cuda_tasks))};
    GPUSHARE_ASSIGN_OR_RETURN(const FusedPoint point, MeasurePoint(fused, tensor_part, cuda_part));
    record.points.push_back(point);
    return absl::OkStatus();
  };
  for (const double load : kLoadRatios) GPUSHARE_RETURN_IF_ERROR(measure_at(load));
  GPUSHARE_RETURN_IF_ERROR(measure_at(CrossingOf(record.points)));
  record.opportune_load_ratio = record.points.back().load_ratio;
  record.opportune_duration_ratio = record.points.back().duration_ratio;
  record.saving = SavingAt(record.points.front());
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
