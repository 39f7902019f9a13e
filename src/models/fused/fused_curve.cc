// Fit of the two lines; see fused_curve.h.

#include "src/models/fused/fused_curve.h"

#include <Eigen/Core>
#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>

namespace gpushare::models {
namespace {

// Points beyond these are left out: a calibration has 5, a curve that judges one 20.
constexpr size_t kPointsMax = 64;
// Places for the inflection between two neighbouring points.
constexpr int kSteps = 16;
// Where one line leaves no more than this, a bend would be made of noise: repeats of a fused kernel
// differ by 0.6 %.
constexpr double kStraightError = 0.01;

using Points = std::array<FusedPoint, kPointsMax>;
using Row = Eigen::Matrix<double, Eigen::Dynamic, 3, Eigen::ColMajor, kPointsMax, 3>;
using Column = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, kPointsMax, 1>;

bool IsUsable(const FusedPoint& point) {
  return std::isfinite(point.load_ratio) && std::isfinite(point.duration_ratio) &&
         point.load_ratio >= 0 && point.duration_ratio > 0;
}

// Usable points, ascending. Returns their number.
size_t Sorted(absl::Span<const FusedPoint> points, Points& out) {
  size_t count = 0;
  for (const FusedPoint& point : points) {
    if (IsUsable(point) && count < kPointsMax) out[count++] = point;
  }
  std::sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count),
            [](const FusedPoint& a, const FusedPoint& b) { return a.load_ratio < b.load_ratio; });
  return count;
}

// Least squares of relative errors: each row is divided by its duration, which makes it 1.
FusedCurve FitAt(const Points& points, size_t count, double inflection, bool bends) {
  const auto rows = static_cast<Eigen::Index>(count);
  Row features(rows, 3);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const FusedPoint& point = points[static_cast<size_t>(i)];
    const double beyond = bends ? std::max(0.0, point.load_ratio - inflection) : 0;
    features.row(i) << 1, point.load_ratio, beyond;
    features.row(i) /= point.duration_ratio;
  }
  const Column ones = Column::Ones(rows);
  FusedCurve curve;
  if (bends) {
    const Eigen::Vector3d fit = features.colPivHouseholderQr().solve(ones);
    curve = {fit[0], fit[1], fit[2], inflection, 0};
  } else {
    const Eigen::Vector2d fit = features.leftCols<2>().colPivHouseholderQr().solve(ones);
    curve = {fit[0], fit[1], 0, inflection, 0};
  }
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double off = curve.At(points[i].load_ratio) / points[i].duration_ratio - 1;
    squares += off * off;
  }
  curve.error = std::sqrt(squares / static_cast<double>(count));
  return curve;
}

}  // namespace

double FusedCurve::At(double load_ratio) const {
  return intercept + slope * load_ratio + bend * std::max(0.0, load_ratio - inflection);
}

FusedCurve FitFusedCurve(absl::Span<const FusedPoint> points) {
  Points sorted;
  const size_t count = Sorted(points, sorted);
  if (count == 0) return {};
  const FusedCurve line = FitAt(sorted, count, sorted[count - 1].load_ratio, /*bends=*/false);
  FusedCurve best = line;
  if (count < kFusedPointsMin || line.error <= kStraightError) return line;
  // Each line has two points or more, except that one of them may be the inflection itself.
  for (size_t i = 1; i + 2 < count; ++i) {
    const double low = sorted[i].load_ratio;
    const double wide = sorted[i + 1].load_ratio - low;
    for (int step = 0; step <= kSteps; ++step) {
      const FusedCurve bent = FitAt(sorted, count, low + wide * step / kSteps, /*bends=*/true);
      if (bent.error < best.error) best = bent;
    }
  }
  return best;
}

}  // namespace gpushare::models
