// Ridge regression over a neighbour's counters; see neighbour_model.h.

#include "src/models/neighbour_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

// Keeps weights of features that hardly vary near 0. Small against the sum of squares of any
// feature over some dozen samples.
constexpr double kRidge = 1e-2;

}  // namespace

// Squares, because contention grows faster than use; products with the share, because a neighbour
// on few SMs asks for less.
NeighbourModel::Features NeighbourModel::FeaturesOf(const UseOfDevice& use, double share) {
  return {1,
          use.dram,
          use.l2,
          use.dram * use.dram,
          use.l2 * use.l2,
          use.dram * share,
          use.l2 * share,
          use.tensor,
          use.issue};
}

void NeighbourModel::Fit(absl::Span<const NeighbourSample> samples) {
  constexpr auto kSize = static_cast<Eigen::Index>(NeighbourState::kFeatures);
  using Matrix = Eigen::Matrix<double, kSize, kSize>;
  using Vector = Eigen::Matrix<double, kSize, 1>;
  state_ = {};
  Matrix squares = Matrix::Identity() * kRidge;
  Vector products = Vector::Zero();
  size_t counted = 0;
  const auto usable = [](const NeighbourSample& sample) {
    const UseOfDevice& use = sample.neighbour;
    return std::isfinite(use.dram + use.l2 + use.tensor + use.issue) &&
           std::isfinite(sample.neighbour_share) && std::isfinite(sample.factor) &&
           sample.factor > 0;
  };
  for (const NeighbourSample& sample : samples) {
    if (!usable(sample)) continue;
    ++counted;
    const Features features = FeaturesOf(sample.neighbour, sample.neighbour_share);
    const Eigen::Map<const Vector> row(features.data());
    squares += row * row.transpose();
    products += row * sample.factor;
  }
  if (counted < kNeighbourSamplesMin) return;
  const Vector weights = squares.ldlt().solve(products);
  if (!weights.allFinite()) return;
  std::copy_n(weights.data(), state_.weights.size(), state_.weights.begin());
  state_.known = true;
  double off = 0;
  for (const NeighbourSample& sample : samples) {
    if (!usable(sample)) continue;
    const double left = Predict(sample.neighbour, sample.neighbour_share).factor - sample.factor;
    off += left * left;
  }
  // Over the degrees of freedom that are left: the fit itself used up the others.
  const size_t used = std::min(counted - 1, state_.weights.size());
  state_.error = std::sqrt(off / static_cast<double>(counted - used));
}

FactorPrediction NeighbourModel::Predict(const UseOfDevice& neighbour,
                                         double neighbour_share) const {
  if (!state_.known) return {};
  const Features features = FeaturesOf(neighbour, neighbour_share);
  double factor = 0;
  for (size_t i = 0; i < features.size(); ++i) factor += state_.weights[i] * features[i];
  return {std::clamp(factor, kFactorMin, 1.0), state_.error};
}

}  // namespace gpushare::models
