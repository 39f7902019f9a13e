// Duration of a fused kernel over the load ratio of its parts as two lines (Tacker VI, figs. 10 and
// 18), and the fit of them to four points or to all. Plain arithmetic.
//
// Ratios and durations are relative to the Tensor part alone. The lines cross at the inflection,
// the opportune load ratio, where both parts end together.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_TWO_STAGE_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_TWO_STAGE_H_

#include <vector>

namespace gpushare::benchmarks {

struct RatioPoint {
  double ratio = 0;
  double duration = 0;
};

struct Line {
  double intercept = 0;
  double slope = 0;
  double At(double ratio) const { return intercept + slope * ratio; }
};

struct TwoStage {
  Line before;
  Line after;
  double inflection = 0;
  double At(double ratio) const { return ratio < inflection ? before.At(ratio) : after.At(ratio); }
};

// Least squares; a point by itself gives a level line. At least one point.
Line FitLine(const std::vector<RatioPoint>& points);

// One line through each group of points; the inflection is where they cross, kept between the
// groups. Points ascend by ratio.
TwoStage FitTwoStage(const std::vector<RatioPoint>& before, const std::vector<RatioPoint>& after);

// From all points, ascending: the division into two groups of at least two with the least squares.
// At least four points.
TwoStage FitTwoStageToAll(const std::vector<RatioPoint>& points);

struct FitError {
  double mean = 0;  // of |predicted / measured - 1|
  double max = 0;
};
FitError ErrorOf(const TwoStage& model, const std::vector<RatioPoint>& points);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_TWO_STAGE_H_
