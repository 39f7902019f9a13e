// The paper's two lines; see two_lines.h.

#include "src/models/evaluation/two_lines.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace gpushare::models {

FusedCurve TwoLines(std::vector<FusedPoint> points) {
  std::sort(points.begin(), points.end(),
            [](const FusedPoint& a, const FusedPoint& b) { return a.load_ratio < b.load_ratio; });
  const auto slope = [&](size_t i) {
    const double wide = points[i + 1].load_ratio - points[i].load_ratio;
    return wide > 0 ? (points[i + 1].duration_ratio - points[i].duration_ratio) / wide : 0;
  };
  FusedCurve curve;
  curve.slope = slope(0);
  curve.intercept = points[0].duration_ratio - curve.slope * points[0].load_ratio;
  const double beyond = slope(points.size() - 2);
  curve.bend = beyond - curve.slope;
  const double beyond_intercept = points.back().duration_ratio - beyond * points.back().load_ratio;
  curve.inflection = (curve.intercept - beyond_intercept) / curve.bend;
  if (!std::isfinite(curve.inflection)) {
    curve.inflection = std::numeric_limits<double>::max();
    curve.bend = 0;
  }
  return curve;
}

}  // namespace gpushare::models
