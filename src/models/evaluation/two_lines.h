// A fused kernel's duration as the paper predicts it: the model that fused_curve.h is compared
// with.
//
// Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_EVALUATION_TWO_LINES_H_
#define GPUSHARE_SRC_MODELS_EVALUATION_TWO_LINES_H_

#include <vector>

#include "src/models/fused/fused_curve.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

// A line through the two smallest load ratios, one through the two largest, and where they cross
// (Tacker VI). Without a crossing the first line holds everywhere. There are kFusedPointsMin points
// or more, in any order.
FusedCurve TwoLines(std::vector<FusedPoint> points);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_EVALUATION_TWO_LINES_H_
