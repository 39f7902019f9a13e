// The fit of the two lines; see fused_pace.h.
//
// The models fit the same lines (src/models/fused/), but the simulated device may not use them: it
// stands in for the GPU that they learn from.

#include "src/sim/physics/fused_pace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "src/sim/physics/tuning.h"

namespace gpushare::sim {
namespace {

// Fewer points do not give two lines and their meeting point.
constexpr size_t kPointsMin = 4;
// Places for the meeting point between two neighbouring points.
constexpr int kSteps = 16;

using Row = std::array<double, 3>;
using Matrix = std::array<Row, 3>;

// Two lines that meet at (ratio, duration). `falls` is the left line's slope, `rises` the right's.
struct Lines {
  double ratio = 1;
  double duration = 1;
  double falls = 0;
  double rises = 1;
  double squares = std::numeric_limits<double>::infinity();
};

double Determinant(const Matrix& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

// The row of the least-squares system for one point: the coefficients of the duration and of the
// two slopes, over the measured duration, because errors are relative.
Row FeaturesOf(const core::FusedPoint& point, double ratio) {
  const double beyond = point.load_ratio - ratio;
  return {1 / point.duration_ratio, std::min(0.0, beyond) / point.duration_ratio,
          std::max(0.0, beyond) / point.duration_ratio};
}

// Least squares of relative errors, by the normal equations and Cramer's rule.
Lines FitAt(absl::Span<const core::FusedPoint> points, double ratio) {
  Matrix normal = {};
  Row right = {};
  for (const core::FusedPoint& point : points) {
    const Row features = FeaturesOf(point, ratio);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) normal[i][j] += features[i] * features[j];
      right[i] += features[i];
    }
  }
  const double scale = Determinant(normal);
  if (!(std::abs(scale) > 1e-12)) return {};
  Row fit = {};
  for (size_t column = 0; column < 3; ++column) {
    Matrix replaced = normal;
    for (size_t i = 0; i < 3; ++i) replaced[i][column] = right[i];
    fit[column] = Determinant(replaced) / scale;
  }
  Lines lines{ratio, fit[0], fit[1], fit[2], 0};
  for (const core::FusedPoint& point : points) {
    const Row features = FeaturesOf(point, ratio);
    const double off = features[0] * fit[0] + features[1] * fit[1] + features[2] * fit[2] - 1;
    lines.squares += off * off;
  }
  return lines;
}

// The best lines. Each side of the meeting point has at least two points; a point at the meeting
// point is on both sides.
Lines Fit(std::vector<core::FusedPoint> points) {
  const auto unusable = [](const core::FusedPoint& point) {
    return !(point.load_ratio >= 0 && point.duration_ratio > 0);
  };
  points.erase(std::remove_if(points.begin(), points.end(), unusable), points.end());
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.load_ratio < b.load_ratio; });
  Lines best;
  for (size_t i = 1; points.size() >= kPointsMin && i + 2 < points.size(); ++i) {
    const double low = points[i].load_ratio;
    const double wide = points[i + 1].load_ratio - low;
    for (int step = 0; step <= kSteps; ++step) {
      const Lines lines = FitAt(points, low + wide * step / kSteps);
      if (lines.squares < best.squares && lines.ratio > 0 && lines.duration > 0) best = lines;
    }
  }
  return best;
}

}  // namespace

FusedPace PaceOf(const core::FusedKernelDesc& fused) {
  const Lines lines = Fit(fused.points);
  FusedPace pace;
  if (std::isfinite(lines.squares)) {
    pace.tensor = {lines.duration, lines.duration - lines.falls * lines.ratio};
    pace.cuda = {lines.duration / lines.ratio, lines.rises};
  } else {
    const double duration = fused.opportune_duration_ratio;
    pace.tensor = {duration, 1};
    pace.cuda = {duration / std::max(1e-6, fused.opportune_load_ratio), 1};
  }
  pace.tensor.alone = std::max(pace.tensor.alone, kFusedAloneLeast);
  pace.cuda.alone = std::max(pace.cuda.alone, kFusedAloneLeast);
  return pace;
}

}  // namespace gpushare::sim
