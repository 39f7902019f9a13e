// A line over the features of library calls and products of their sizes, by ridge regression
// (Baymax 4.3, eq. 1, with an intercept).
//
// Threads: any, after Fit. At() allocates nothing.

#ifndef GPUSHARE_SRC_MODELS_LIBRARY_FEATURE_LINE_H_
#define GPUSHARE_SRC_MODELS_LIBRARY_FEATURE_LINE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "src/models/library/nearest_features.h"

namespace gpushare::models {

class FeatureLine {
 public:
  // One value for each point; all finite, features scaled to a deviation of about 1. Returns each
  // point's error (value - line) as a line through all others has it: leave-one-out, from the hat
  // matrix. Empty if there is no solution.
  std::vector<double> Fit(absl::Span<const FeaturePoint> points, absl::Span<const double> values);

  double At(const FeaturePoint& point) const;

  // Sizes whose squares and products count as features.
  static constexpr size_t kSizes = 6;
  static constexpr size_t kTerms = 1 + kLibraryFeatures + kSizes * (kSizes + 1) / 2;

  absl::Span<const double> weights() const { return weights_; }
  // kTerms finite numbers.
  void Restore(absl::Span<const double> weights) {
    std::copy_n(weights.begin(), kTerms, weights_.begin());
  }

 private:
  using Terms = std::array<double, kTerms>;
  static Terms TermsOf(const FeaturePoint& point);

  Terms weights_ = {};
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LIBRARY_FEATURE_LINE_H_
