// The duration of a fused kernel over the load ratio: two lines that meet (Tacker VI, eq. 1 to 6).
//
//   t(r) = intercept + slope r + bend max(0, r - inflection)
//
// r is the CD part's time alone over the TC part's, t the fused kernel's over the TC part's. The
// paper trains each line at two load ratios and takes their crossing for the inflection. Where both
// lines are nearly parallel, noise puts the crossing anywhere, so that here all points fit both
// lines and the inflection together, by least squares of relative errors. Five points with one near
// the inflection are enough (docs/models.md). Pure; allocates nothing. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_FUSED_FUSED_CURVE_H_
#define GPUSHARE_SRC_MODELS_FUSED_FUSED_CURVE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

inline constexpr size_t kFusedPointsMin = 4;

struct FusedCurve {
  double intercept = 0;
  double slope = 0;
  double bend = 0;
  double inflection = 0;  // the opportune load ratio: both parts end together
  double error = 0;       // root mean square of the relative errors at the points

  double At(double load_ratio) const;
};

// Points in any order. Fewer than kFusedPointsMin of them, or points at two load ratios only, give
// one line with the inflection at the largest ratio. A point that is not finite or not positive
// does not count; without a usable point the curve is 0 everywhere.
FusedCurve FitFusedCurve(absl::Span<const FusedPoint> points);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_FUSED_FUSED_CURVE_H_
