// Duration as a line over one feature (block tasks, bytes), learned online: y = a + b x.
//
// Tacker VI-C and Baymax 4.3 predict durations by linear regression; this is its online form, with
// running sums that forget. Errors of GPU durations are proportional to the duration, so samples
// are weighted by 1 / y^2: the fit minimises relative errors. While too few samples, or samples of
// one size only, leave the slope open, the shape of a base (the prior, or the line before the last
// refit) is kept and only its scale is learned.
// Refit: when the mean error of the last samples passes 10 % (Tacker VI-C), the sums are made anew
// from the samples that were off. Threads: the scheduler's only. Nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_LINEAR_MODEL_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_LINEAR_MODEL_H_

#include <array>
#include <cstdint>

#include "src/core/seams/cost_model.h"

namespace gpushare::models {

// Everything that a file keeps of a model. Weights are 1 / y^2, sums are decayed.
struct LinearState {
  int64_t samples = 0;  // since the last refit
  double weight = 0;
  double mean_x = 0;
  double mean_y_ns = 0;
  double mean_base_ns = 0;  // of what the base predicted for the same samples
  double covariance_xx = 0;
  double covariance_xy = 0;
  bool has_line = false;  // the base is the line below, not the prior
  double line_intercept_ns = 0;
  double line_slope_ns = 0;
  double squared_error = 0;  // smoothed square of the relative error of trained predictions
  int64_t refits = 0;
};

class LinearModel {
 public:
  // prior_ns: what is expected at x without any sample.
  core::Prediction Predict(double x, double prior_ns) const;

  // One solo sample. Returns whether predictions may have moved by more than the refit threshold.
  bool Observe(double x, double measured_ns, double prior_ns);

  const LinearState& state() const { return state_; }
  // `state` was checked by the caller: finite, no negative weight, duration or covariance_xx.
  void Restore(const LinearState& state);

 private:
  static constexpr int kWindow = 8;
  struct Sample {
    double x = 0;
    double y_ns = 0;
    double base_ns = 0;
    double error = 0;  // relative, of the prediction made before this sample was learned
  };

  void Refit();

  LinearState state_;
  std::array<Sample, kWindow> window_;  // the newest samples, a ring
  int64_t seen_ = 0;                    // samples in the ring since it was emptied
  LinearState trusted_;    // before the newest sample that was predicted within the threshold
  LinearState announced_;  // what the last announced predictions were made from
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_LINEAR_MODEL_H_
