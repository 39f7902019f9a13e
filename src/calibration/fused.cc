// Measures fused kernels. See calibration_fused.h.

#include "src/calibration/fused.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/calibration/kernel.h"

namespace gpushare::models {
namespace {

// Tacker trains a pair at these.
constexpr double kLoadRatios[] = {0.1, 0.2, 1.8, 1.9};
// The CD part's sample task holds the largest of them and what rounding adds.
constexpr double kLoadMost = 2;
// Slopes nearer than this do not cross anywhere that means something.
constexpr double kSlopesDiffer = 0.05;
// Less is the noise of two measurements: such a pair is not fused.
constexpr double kSavingLeast = 0.01;
constexpr int kRepeatsMost = 3;
// Launches of a part alone, of which one among others is timed.
constexpr int kAloneBatch = 4;

// Of a request for the tensor part, the same for its partner.
core::LaunchRequest PartnerOf(const core::LaunchRequest& request) {
  core::LaunchRequest out;
  out.parts[0] = request.parts[1];
  out.parts[0].lane = request.parts[0].lane;
  out.parts[0].counter = -1;
  out.parts[0].reset_counter = false;
  return out;
}

core::LaunchRequest FusedRequest(const core::FusedKernelDesc& fused, const CalibrationItem& tensor,
                                 const CalibrationItem& cuda, core::LaneIndex lane,
                                 core::LaneIndex partner_lane) {
  core::LaunchRequest request = TaskRequest(tensor, core::Form::kFused, lane);
  const core::LaunchRequest second = TaskRequest(cuda, core::Form::kFused, partner_lane);
  request.fused = &fused;
  request.parts[0].counter = 0;
  request.parts[0].reset_counter = true;
  core::LaunchPart& partner = request.parts[1];
  partner = second.parts[0];
  partner.counter = 1;
  partner.reset_counter = true;
  return request;
}

}  // namespace

double CrossingOf(absl::Span<const FusedPoint> points) {
  const auto slope = [](const FusedPoint& a, const FusedPoint& b) {
    const double wide = b.load_ratio - a.load_ratio;
    return wide > 0 ? (b.duration_ratio - a.duration_ratio) / wide : 0;
  };
  const double low = points[1].load_ratio;
  const double high = points[2].load_ratio;
  // Loads are measured: where block tasks are few and long, noise may turn them round.
  if (!(low < high)) return (low + high) / 2;
  const double before = slope(points[0], points[1]);
  const double beyond = slope(points[2], points[3]);
  if (std::abs(beyond - before) < kSlopesDiffer) return (low + high) / 2;
  const double at_zero_before = points[0].duration_ratio - before * points[0].load_ratio;
  const double at_zero_beyond = points[2].duration_ratio - beyond * points[2].load_ratio;
  return std::clamp((at_zero_before - at_zero_beyond) / (beyond - before), low, high);
}

double SavingAt(const FusedPoint& point) {
  return 1 - point.duration_ratio / (1 + point.load_ratio);
}

absl::StatusOr<double> FusedMeter::AloneNs(const core::LaunchRequest& workers) {
  core::LaunchRequest request = workers;
  request.form = core::Form::kSlice;
  request.parts[0].lane = plain_lane_;
  request.fused = nullptr;
  request.parts[1] = {};
  request.parts[0].counter = -1;
  request.parts[0].reset_counter = false;
  return timer_.TimePerLaunch(request, kAloneBatch);
}

// Both parts alone and the fused kernel in turn: all see the same clocks.
absl::StatusOr<FusedPoint> FusedMeter::MeasurePoint(const core::LaunchRequest& request) {
  std::vector<double> loads;
  std::vector<double> durations;
  for (int i = 0; i < std::min(options_.repeats, kRepeatsMost); ++i) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    absl::StatusOr<double> tensor = AloneNs(request);
    if (!tensor.ok()) return tensor.status();
    absl::StatusOr<double> cuda = AloneNs(PartnerOf(request));
    if (!cuda.ok()) return cuda.status();
    absl::StatusOr<double> fused = timer_.RunFused(request);
    if (!fused.ok()) return fused.status();
    loads.push_back(*cuda / *tensor);
    durations.push_back(*fused / *tensor);
  }
  return FusedPoint{Median(std::move(loads)), Median(std::move(durations))};
}

absl::StatusOr<FusedRecord> FusedMeter::Measure(const core::FusedKernelDesc& fused,
                                                const CalibrationItem& tensor,
                                                const KernelMeasurement& tensor_alone,
                                                const CalibrationItem& cuda,
                                                const KernelMeasurement& cuda_alone) {
  FusedRecord record;
  record.name = fused.name;
  record.tensor = tensor.kernel.name;
  record.cuda = cuda.kernel.name;
  record.tensor_blocks = fused.tensor_blocks;
  record.cuda_blocks = fused.cuda_blocks;
  record.verdict = FusedVerdict::kNeverGains;
  core::LaunchRequest request = FusedRequest(fused, tensor, cuda, lane_, partner_lane_);
  const auto tensor_ns = static_cast<double>(std::max<int64_t>(1, tensor_alone.solo_ns));
  const auto cuda_ns = static_cast<double>(std::max<int64_t>(1, cuda_alone.solo_ns));
  // So much of the TC part that the CD part's sample task is twice as long.
  const double share = std::min(1.0, cuda_ns / kLoadMost / tensor_ns);
  const auto tensor_tasks = static_cast<double>(tensor.block_tasks);
  const auto cuda_tasks = static_cast<double>(cuda.block_tasks);
  request.parts[0].block_count = std::max<int64_t>(1, std::llround(tensor_tasks * share));
  const double own_ns =
      tensor_ns * static_cast<double>(request.parts[0].block_count) / tensor_tasks;
  const auto measure_at = [&](double load) -> absl::Status {
    const double tasks = std::round(load * own_ns / cuda_ns * cuda_tasks);
    request.parts[1].block_count = static_cast<int64_t>(std::clamp(tasks, 1.0, cuda_tasks));
    absl::StatusOr<FusedPoint> point = MeasurePoint(request);
    if (point.ok()) record.points.push_back(*point);
    return point.status();
  };
  for (const double load : kLoadRatios) {
    if (absl::Status status = measure_at(load); !status.ok()) return status;
  }
  if (absl::Status status = measure_at(CrossingOf(record.points)); !status.ok()) return status;
  record.opportune_load_ratio = record.points.back().load_ratio;
  record.opportune_duration_ratio = record.points.back().duration_ratio;
  record.saving = SavingAt(record.points.front());
  for (const FusedPoint& point : record.points) {
    record.saving = std::max(record.saving, SavingAt(point));
  }
  return record;
}

void JudgeFused(std::vector<FusedRecord>& fused, std::vector<std::string>& notes) {
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
    notes.push_back(absl::StrFormat(
        "Of '%s' and '%s' the fused kernel '%s' is kept, and %d others are dropped: it saves "
        "%.1f %% of one after the other; both parts end together at a load ratio of %.2f.",
        pair.first, pair.second, record->name, dropped[pair] - 1, 100 * record->saving,
        record->opportune_load_ratio));
  }
}

}  // namespace gpushare::models
