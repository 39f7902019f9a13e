// Learning of a fused kernel's curve; see fused_model.h.

#include "src/models/fused/fused_model.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

// The paper's two lines without a measurement here were off by 9.5 % on average (docs/models.md);
// ratios of another input are no better.
constexpr double kUntrainedError = 0.25;
// Repeats of one fused kernel differ by so much.
constexpr double kLeastError = 0.01;
constexpr double kRefitError = 0.10;  // Tacker VI-C
// One outlier refits nothing, two of them do.
constexpr double kErrorMost = 0.5;
constexpr size_t kFirstRuns = 3;
// Runs and predictions far outside of what fusing can do count as these.
constexpr double kRatioMin = 1e-3;
constexpr double kRatioMax = 1e3;
// Load ratios at which a curve is kept, over its inflection: two for each line.
constexpr std::array<double, FusedModel::kPoints> kKept = {0.1, 0.5, 1.0, 1.5, 2.0};
// A run speaks for load ratios within this factor.
constexpr double kNear = 1.3;
constexpr double kErrorWeight = 0.2;
// Runs nearer than this, in the logarithm of the load ratio, count alike.
constexpr double kNearest = 0.1;

double RatioOr1(double value) {
  return std::isfinite(value) && value > 0 ? std::clamp(value, kRatioMin, kRatioMax) : 1;
}

FusedCurve PaperCurve(double load_ratio, double duration_ratio) {
  const double r0 = RatioOr1(load_ratio);
  const double slope = std::max(0.0, (RatioOr1(duration_ratio) - 1) / r0);
  return {1, slope, 1 - slope, r0, 0};
}

}  // namespace

FusedModel::FusedModel(double opportune_load_ratio, double opportune_duration_ratio)
    : curve_(PaperCurve(opportune_load_ratio, opportune_duration_ratio)),
      error_(kUntrainedError),
      runs_{},
      errors_{} {}

bool FusedModel::Observe(double load_ratio, double duration_ratio) {
  const bool usable = load_ratio >= kRatioMin && load_ratio <= kRatioMax &&
                      duration_ratio >= kRatioMin && duration_ratio <= kRatioMax;
  if (!usable) return false;
  const double off = std::abs(curve_.At(load_ratio) / duration_ratio - 1);
  runs_[seen_ % kWindow] = {load_ratio, duration_ratio};
  errors_[seen_ % kWindow] = std::min(off, kErrorMost);
  ++seen_;
  const double squares = (1 - kErrorWeight) * error_ * error_ +
                         kErrorWeight * std::min(off, kErrorMost) * std::min(off, kErrorMost);
  error_ = std::max(kLeastError, std::sqrt(squares));
  const size_t counted = std::min(seen_, kWindow);
  double mean = 0;
  for (size_t i = 0; i < counted; ++i) mean += errors_[i] / static_cast<double>(counted);
  const bool first = !trained_ && seen_ >= kFirstRuns;
  const bool whole = seen_ >= kWindow && (!settled_ || mean > kRefitError);
  if (!first && !whole) return false;
  Refit(/*drifted=*/settled_);
  settled_ = whole;
  return true;
}

// Measured over predicted durations of the runs, weighted by how near they are (Shepard).
double FusedModel::CorrectionAt(absl::Span<const FusedPoint> runs, double load_ratio) const {
  double sum = 0;
  double weights = 0;
  for (const FusedPoint& run : runs) {
    const double expected = std::max(kRatioMin, curve_.At(run.load_ratio));
    const double far = kNearest + std::abs(std::log(run.load_ratio / load_ratio));
    const double weight = 1 / (far * far * far);
    sum += weight * run.duration_ratio / expected;
    weights += weight;
  }
  return sum / weights;
}

void FusedModel::Refit(bool drifted) {
  std::array<FusedPoint, kWindow + kPoints> points;
  size_t count = 0;
  for (size_t i = 0; i < std::min(seen_, kWindow); ++i) {
    if (!drifted || errors_[i] > kRefitError) points[count++] = runs_[i];
  }
  const absl::Span<const FusedPoint> runs = absl::MakeConstSpan(points.data(), count);
  for (const FusedPoint& kept : Points()) {
    const bool near = std::any_of(runs.begin(), runs.end(), [&](const FusedPoint& run) {
      return run.load_ratio < kept.load_ratio * kNear && run.load_ratio > kept.load_ratio / kNear;
    });
    if (near || kept.load_ratio < kRatioMin) continue;
    points[count++] = {kept.load_ratio, CorrectionAt(runs, kept.load_ratio) * kept.duration_ratio};
  }
  const size_t measured = runs.size();
  curve_ = FitFusedCurve(absl::MakeConstSpan(points.data(), count));
  // Of the runs alone: what was kept of the old curve says nothing of the new one's error.
  double squares = 0;
  for (size_t i = 0; i < measured; ++i) {
    const double off = curve_.At(points[i].load_ratio) / points[i].duration_ratio - 1;
    squares += off * off / static_cast<double>(measured);
  }
  error_ = std::clamp(std::sqrt(squares), kLeastError, kErrorMost);
  trained_ = true;
  seen_ = 0;
}

void FusedModel::Train(absl::Span<const FusedPoint> points, double error) {
  if (points.size() < kFusedPointsMin) return;
  const FusedCurve curve = FitFusedCurve(points);
  if (!(curve.At(1) > 0) || !std::isfinite(curve.error)) return;
  curve_ = curve;
  error_ = std::clamp(std::max(error, curve.error), kLeastError, kErrorMost);
  trained_ = settled_ = true;
  seen_ = 0;
}

std::array<FusedPoint, FusedModel::kPoints> FusedModel::Points() const {
  std::array<FusedPoint, kPoints> points;
  const double inflection = std::max(kRatioMin, curve_.inflection);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i] = {kKept[i] * inflection, curve_.At(kKept[i] * inflection)};
  }
  return points;
}

}  // namespace gpushare::models
