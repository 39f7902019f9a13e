// The online line; see linear_model.h.

#include "src/models/durations/linear_model.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

// Tacker VI-C: a model is refitted when its error passes 10 %.
constexpr double kRefitError = 0.10;
// One outlier in a window of 8 adds at most 6 %, so that it alone refits nothing; two do.
constexpr double kErrorShownMax = 0.50;
constexpr int64_t kWindowMin = 6;
// Half of a sample's weight is gone after 44 later ones: slow drift is followed, noise is averaged.
constexpr double kForgetting = 1.0 - 1.0 / 64;
constexpr double kErrorSmoothing = 1.0 / 16;
constexpr double kErrorMin = 0.01;  // of a model's first error bar
// A first sample is often cold; from the third on the samples alone count.
constexpr int64_t kTrustedSamples = 3;
constexpr int64_t kSlopeSamples = 4;
// Below this relative spread of x the slope would be made of noise.
constexpr double kSpreadMin = 0.02;
// Relative error of a prior: library calls in hardware.md differ by so much from a plain estimate.
constexpr double kPriorError = 0.25;

int64_t ToDuration(double ns) {
  if (!(ns > 0)) return 0;  // NaN, too
  return static_cast<int64_t>(std::clamp(ns, 0.0, static_cast<double>(core::kMaxDurationNs)) + 0.5);
}

double Base(const LinearState& state, double x, double prior_ns) {
  if (!state.has_line) return prior_ns;
  return std::max(1.0, state.line_intercept_ns + state.line_slope_ns * x);
}

bool HasSlope(const LinearState& state) {
  if (state.samples < kSlopeSamples) return false;
  const double spread = kSpreadMin * state.mean_x;
  return state.covariance_xx > state.weight * spread * spread && state.covariance_xx > 0;
}

struct Line {
  double intercept_ns = 0;
  double slope_ns = 0;
  double At(double x) const { return intercept_ns + slope_ns * x; }
};

// More work never takes less time, and no work takes no negative time. Where large work is slow for
// its size, the line would be below 0 for small work. Then the line through the origin counts.
Line LineOf(const LinearState& state) {
  Line line;
  line.slope_ns = std::max(0.0, state.covariance_xy / state.covariance_xx);
  line.intercept_ns = state.mean_y_ns - line.slope_ns * state.mean_x;
  if (line.intercept_ns >= 0) return line;
  const double mean_xx = state.covariance_xx / state.weight + state.mean_x * state.mean_x;
  const double mean_xy = state.covariance_xy / state.weight + state.mean_x * state.mean_y_ns;
  return {0, mean_xy / mean_xx};
}

double Estimate(const LinearState& state, double x, double prior_ns) {
  const double base = Base(state, x, prior_ns);
  if (state.samples == 0 || state.mean_base_ns <= 0) return base;
  if (HasSlope(state)) {
    return std::max(1.0, LineOf(state).At(x));
  }
  // All samples have this size: the prior, which may have changed since, does not count.
  if (state.samples >= kTrustedSamples && x == state.mean_x) return state.mean_y_ns;
  // After a refit the samples agree that the old scale is wrong; before the first one may be cold.
  const double samples = static_cast<double>(state.samples);
  const double trust =
      state.refits > 0 ? 1 : std::min(1.0, samples / static_cast<double>(kTrustedSamples));
  return base * (1 + trust * (state.mean_y_ns / state.mean_base_ns - 1));
}

// Welford's update with weights and forgetting: no difference of large sums.
void Accumulate(LinearState& state, double x, double y_ns, double base_ns) {
  const double weight = 1 / (y_ns * y_ns);
  state.weight = kForgetting * state.weight + weight;
  const double gain = weight / state.weight;
  const double dx = x - state.mean_x;
  const double dy = y_ns - state.mean_y_ns;
  state.mean_x += gain * dx;
  state.mean_y_ns += gain * dy;
  state.mean_base_ns += gain * (base_ns - state.mean_base_ns);
  state.covariance_xx = kForgetting * state.covariance_xx + weight * dx * (x - state.mean_x);
  state.covariance_xy = kForgetting * state.covariance_xy + weight * dx * (y_ns - state.mean_y_ns);
  ++state.samples;
}

}  // namespace

core::Prediction LinearModel::Predict(double x, double prior_ns) const {
  const double estimate = Estimate(state_, x, prior_ns);
  core::Prediction prediction;
  prediction.duration_ns = ToDuration(estimate);
  prediction.trained = state_.samples >= kTrustedSamples;
  const double error = prediction.trained ? std::sqrt(state_.squared_error) : kPriorError;
  prediction.error_ns = ToDuration(estimate * error);
  return prediction;
}

// Keeps the shape (a line, once there was one) and the newest samples that were off. The line is
// that of the last sample that it predicted well: the newer ones have bent it already.
void LinearModel::Refit() {
  LinearState fresh;
  fresh.refits = state_.refits + 1;
  fresh.squared_error = state_.squared_error;
  const bool new_line = HasSlope(trusted_);
  fresh.has_line = new_line || trusted_.has_line;
  const Line kept =
      new_line ? LineOf(trusted_) : Line{trusted_.line_intercept_ns, trusted_.line_slope_ns};
  fresh.line_slope_ns = kept.slope_ns;
  fresh.line_intercept_ns = kept.intercept_ns;
  const auto newest = [this](int64_t age) -> const Sample& {
    return window_[static_cast<size_t>((seen_ - 1 - age) % kWindow)];
  };
  int64_t off = 0;
  while (off < std::min<int64_t>(seen_, kWindow) && newest(off).error > kRefitError) ++off;
  state_ = fresh;
  for (int64_t age = std::max<int64_t>(off, 1); age-- > 0;) {
    const Sample& sample = newest(age);
    Accumulate(state_, sample.x, sample.y_ns, Base(state_, sample.x, sample.base_ns));
  }
  seen_ = 0;
}

bool LinearModel::Observe(double x, double measured_ns, double prior_ns) {
  Sample sample;
  sample.x = x;
  sample.y_ns = std::max(1.0, measured_ns);
  sample.base_ns = Base(state_, x, prior_ns);
  const auto error = [&] {
    return std::abs(Estimate(state_, x, prior_ns) - sample.y_ns) / sample.y_ns;
  };
  sample.error = error();

  if (sample.error <= kRefitError) trusted_ = state_;
  const bool was_trained = state_.samples >= kTrustedSamples;
  Accumulate(state_, x, sample.y_ns, sample.base_ns);
  if (was_trained) {
    window_[static_cast<size_t>(seen_ % kWindow)] = sample;
    ++seen_;
    const double shown = std::min(sample.error, kErrorShownMax);
    state_.squared_error += kErrorSmoothing * (shown * shown - state_.squared_error);
  } else if (state_.samples == kTrustedSamples && state_.refits == 0) {
    // Start from what the trained model leaves on the sample that completed it.
    const double left = std::clamp(error(), kErrorMin, kErrorShownMax);
    state_.squared_error = left * left;
  }

  const int64_t count = std::min<int64_t>(seen_, kWindow);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += std::min(window_[static_cast<size_t>(i)].error, kErrorShownMax);
  }
  if (count >= kWindowMin && sum > kRefitError * static_cast<double>(count)) Refit();

  const double announced_ns = Estimate(announced_, x, prior_ns);
  const double now_ns = Estimate(state_, x, prior_ns);
  if (std::abs(now_ns - announced_ns) <= kRefitError * announced_ns) return false;
  announced_ = state_;
  return true;
}

void LinearModel::Restore(const LinearState& state) {
  state_ = state;
  announced_ = state;
  trusted_ = state;
  seen_ = 0;
}

}  // namespace gpushare::models
