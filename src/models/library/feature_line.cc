// Ridge regression over features; see feature_line.h.

#include "src/models/library/feature_line.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

namespace gpushare::models {
namespace {

// The strength of the ridge is the one of these with the least error of the left-out points.
constexpr double kRidges[] = {1e-2, 1e-1, 1, 10, 100};
// With fewer samples only the features themselves count: products would fit their noise.
constexpr size_t kSamplesForProducts = 64;
// A point that alone decides its own value says nothing of the others.
constexpr double kLeverageMax = 0.99;

}  // namespace

FeatureLine::Terms FeatureLine::TermsOf(const FeaturePoint& point) {
  Terms terms;
  size_t term = 0;
  terms[term++] = 1;
  for (const double feature : point) terms[term++] = feature;
  for (size_t i = 0; i < kSizes; ++i) {
    for (size_t j = i; j < kSizes; ++j) terms[term++] = point[i] * point[j];
  }
  return terms;
}

std::vector<double> FeatureLine::Fit(absl::Span<const FeaturePoint> points,
                                     absl::Span<const double> values) {
  constexpr auto kSize = static_cast<Eigen::Index>(kTerms);
  using Vector = Eigen::Matrix<double, kSize, 1>;
  const auto count = static_cast<Eigen::Index>(points.size());
  Eigen::MatrixXd rows(count, kSize);
  for (Eigen::Index i = 0; i < count; ++i) {
    Terms terms = TermsOf(points[static_cast<size_t>(i)]);
    if (points.size() < kSamplesForProducts) {
      std::fill(terms.begin() + 1 + kLibraryFeatures, terms.end(), 0);
    }
    rows.row(i) = Eigen::Map<const Vector>(terms.data()).transpose();
  }
  const Eigen::Map<const Eigen::VectorXd> targets(values.data(), count);
  const Eigen::MatrixXd squares = rows.transpose() * rows;
  const Vector products = rows.transpose() * targets;
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  for (const double ridge : kRidges) {
    Eigen::MatrixXd ridged = squares;
    ridged.diagonal().array() += ridge;
    ridged(0, 0) -= ridge * 0.999;  // the intercept is free
    const Eigen::LDLT<Eigen::MatrixXd> solver(ridged);
    const Vector weights = solver.solve(products);
    if (!weights.allFinite()) continue;
    // Leverages: the diagonal of rows (rows' rows + ridge)^-1 rows'.
    const Eigen::MatrixXd solved = solver.solve(rows.transpose());
    const Eigen::VectorXd leverages = (rows.array() * solved.transpose().array()).rowwise().sum();
    const Eigen::VectorXd left =
        (targets - rows * weights).array() / (1 - leverages.array().min(kLeverageMax));
    const double error = left.array().abs().sum();
    if (!(error < least)) continue;
    least = error;
    best.assign(left.data(), left.data() + count);
    std::copy_n(weights.data(), kTerms, weights_.begin());
  }
  return best;
}

double FeatureLine::At(const FeaturePoint& point) const {
  const Terms terms = TermsOf(point);
  double value = 0;
  for (size_t i = 0; i < kTerms; ++i) value += weights_[i] * terms[i];
  return value;
}

}  // namespace gpushare::models
