#include "benchmarks/gpu/overlap/two_stage.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gpushare::benchmarks {
namespace {

// Slopes that differ by less give no crossing that means anything.
constexpr double kParallel = 1e-6;

double SquaredError(const Line& line, const std::vector<RatioPoint>& points) {
  double sum = 0;
  for (const RatioPoint& point : points) {
    const double error = line.At(point.ratio) - point.duration;
    sum += error * error;
  }
  return sum;
}

}  // namespace

Line FitLine(const std::vector<RatioPoint>& points) {
  const auto count = static_cast<double>(points.size());
  double ratio = 0;
  double duration = 0;
  for (const RatioPoint& point : points) {
    ratio += point.ratio / count;
    duration += point.duration / count;
  }
  double across = 0;
  double along = 0;
  for (const RatioPoint& point : points) {
    across += (point.ratio - ratio) * (point.duration - duration);
    along += (point.ratio - ratio) * (point.ratio - ratio);
  }
  Line line;
  line.slope = along > 0 ? across / along : 0;
  line.intercept = duration - line.slope * ratio;
  return line;
}

TwoStage FitTwoStage(const std::vector<RatioPoint>& before, const std::vector<RatioPoint>& after) {
  TwoStage model;
  model.before = FitLine(before);
  model.after = FitLine(after);
  const double low = before.back().ratio;
  const double high = after.front().ratio;
  const double bend = model.after.slope - model.before.slope;
  model.inflection = (low + high) / 2;
  if (std::abs(bend) > kParallel) {
    model.inflection =
        std::clamp((model.before.intercept - model.after.intercept) / bend, low, high);
  }
  return model;
}

TwoStage FitTwoStageToAll(const std::vector<RatioPoint>& points) {
  TwoStage best;
  double least = -1;
  for (size_t split = 2; split + 2 <= points.size(); ++split) {
    const auto middle = points.begin() + static_cast<std::ptrdiff_t>(split);
    const std::vector<RatioPoint> before(points.begin(), middle);
    const std::vector<RatioPoint> after(middle, points.end());
    const TwoStage model = FitTwoStage(before, after);
    const double error = SquaredError(model.before, before) + SquaredError(model.after, after);
    if (least >= 0 && error >= least) continue;
    least = error;
    best = model;
  }
  return best;
}

FitError ErrorOf(const TwoStage& model, const std::vector<RatioPoint>& points) {
  FitError error;
  for (const RatioPoint& point : points) {
    const double one = std::abs(model.At(point.ratio) / point.duration - 1);
    error.mean += one / static_cast<double>(points.size());
    error.max = std::max(error.max, one);
  }
  return error;
}

}  // namespace gpushare::benchmarks
