// The duration of one fused kernel, learned from its runs: the curve of fused_curve.h with an error
// bar.
//
// It starts from what the kernel's registration says: the fused kernel takes what its TC part takes
// as long as the CD part is small, t0 at the opportune load ratio r0, and beyond it as much longer
// as the CD part is (Tacker eq. 3 and 6, docs/errata.md). Points of a profile replace that. When
// the mean error of the last runs passes 10 % (Tacker VI-C), the curve is fitted again to those
// of them that were off; where none of these was, to the old curve, scaled as the nearest runs were
// off. Threads: the scheduler's only. Nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_FUSED_FUSED_MODEL_H_
#define GPUSHARE_SRC_MODELS_FUSED_FUSED_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/models/fused/fused_curve.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

class FusedModel {
 public:
  // r0 and t0. Values that are no ratios count as 1.
  FusedModel(double opportune_load_ratio, double opportune_duration_ratio);

  const FusedCurve& curve() const { return curve_; }
  // One standard deviation of the relative error.
  double error() const { return error_; }
  // Whether points or runs are behind the curve.
  bool trained() const { return trained_; }

  // One run of both parts from start to end. Returns whether the curve is another now.
  bool Observe(double load_ratio, double duration_ratio);

  // Fits the curve to measured points. Fewer than kFusedPointsMin usable ones change nothing. The
  // error bar is what the fit leaves, or `error` if that is more.
  void Train(absl::Span<const FusedPoint> points, double error = 0);

  // The curve as points, for a profile: training with them gives the same curve.
  static constexpr size_t kPoints = 5;
  std::array<FusedPoint, kPoints> Points() const;

 private:
  static constexpr size_t kWindow = 8;

  void Refit(bool drifted);
  double CorrectionAt(absl::Span<const FusedPoint> runs, double load_ratio) const;

  FusedCurve curve_;
  double error_;
  bool trained_ = false;
  bool settled_ = false;                  // fitted to a whole window, or to points of a profile
  std::array<FusedPoint, kWindow> runs_;  // the newest, a ring
  std::array<double, kWindow> errors_;    // relative, of the prediction made before each
  size_t seen_ = 0;                       // runs in the ring since the last fit
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_FUSED_FUSED_MODEL_H_
