// Ridge regression over a neighbour's counters; see neighbour_model.h.

#include "src/models/pairs/neighbour_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

// Keeps weights of features that hardly vary near 0. This, the features and the weights of samples
// were chosen by errors of an H200's training pairs, with their neighbours left out.
constexpr double kRidge = 5e-2;
// Fewer rows have no error bar of their own.
constexpr size_t kGroupMin = 8;
// A neighbour whose writes use so much of DRAM costs a kernel half of what it can lose by lines of
// L2 that are no longer there. A read counts as a part of a write.
constexpr double kHalfReplaced = 0.02;
constexpr double kReadOverWrite = 0.25;

// How much of L2 the neighbour's traffic replaces while the kernel runs, 0 to 1. Little traffic
// replaces most of it.
double ReplacedL2(const UseOfDevice& use) {
  const double reads = std::max(0.0, use.dram - use.dram_write);
  const double traffic = std::max(0.0, use.dram_write) + kReadOverWrite * reads;
  return traffic / (traffic + kHalfReplaced);
}

}  // namespace

UseOfDevice UseOf(const core::KernelCounters& counters) {
  return {counters.dram, counters.l2, counters.tensor, counters.dram_write};
}

// What the neighbour moves follows its speed there: a kernel that is bound by DRAM reaches three
// quarters of its traffic on 52 of 132 SMs, others two fifths. The square, because DRAM that both
// ask for costs little until it is short. Writes cost more than reads.
NeighbourModel::Features NeighbourModel::FeaturesOf(const UseOfDevice& use,
                                                    const NeighbourPlace& place) {
  const double share = place.share;
  const double speed = place.speed;
  const double replaced = ReplacedL2(use);
  const double traffic = use.dram * speed;
  return {1,
          use.l2 * speed,
          use.dram_write * speed,
          use.tensor * speed,
          replaced * speed,
          traffic * traffic,
          use.dram * share,
          use.dram_write * share,
          replaced * share,
          traffic * traffic * share};
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
    return std::isfinite(use.dram + use.l2 + use.tensor + use.dram_write) &&
           std::isfinite(sample.place.share + sample.place.speed + sample.factor) &&
           sample.factor >= kNeighbourFactorMin;
  };
  for (const NeighbourSample& sample : samples) {
    if (!usable(sample)) continue;
    ++counted;
    const Features features = FeaturesOf(sample.neighbour, sample.place);
    const Eigen::Map<const Vector> row(features.data());
    // Errors are relative: twice the weight for a loss of 0.3.
    const double weight = 1 / (sample.factor * sample.factor);
    squares += weight * row * row.transpose();
    products += weight * row * sample.factor;
  }
  if (counted < kNeighbourSamplesMin) return;
  const Vector weights = squares.ldlt().solve(products);
  if (!weights.allFinite()) return;
  std::copy_n(weights.data(), state_.weights.size(), state_.weights.begin());
  state_.known = true;
  // Over the degrees of freedom that are left: the fit itself used up the others.
  const double left_over =
      static_cast<double>(counted) /
      static_cast<double>(counted - std::min(counted - 1, state_.weights.size()));
  std::array<double, 2> squares_of = {};
  std::array<size_t, 2> rows_of = {};
  for (const NeighbourSample& sample : samples) {
    if (!usable(sample)) continue;
    const double factor = Predict(sample.neighbour, sample.place).factor;
    const size_t group = factor > 1 - kSmallLoss ? 1 : 0;
    squares_of[group] += (factor - sample.factor) * (factor - sample.factor) * left_over;
    ++rows_of[group];
  }
  const double all = std::sqrt((squares_of[0] + squares_of[1]) / static_cast<double>(counted));
  const auto error_of = [&](size_t group) {
    const auto rows = static_cast<double>(rows_of[group]);
    return std::min(1.0, rows_of[group] < kGroupMin ? all : std::sqrt(squares_of[group] / rows));
  };
  state_.error = error_of(0);
  state_.small_error = error_of(1);
}

FactorPrediction NeighbourModel::Predict(const UseOfDevice& neighbour,
                                         const NeighbourPlace& place) const {
  if (!state_.known) return {};
  if (neighbour.dram < kNoUse && neighbour.l2 < kNoUse) return {1, 0};
  const Features features = FeaturesOf(neighbour, place);
  double factor = 0;
  for (size_t i = 0; i < features.size(); ++i) factor += state_.weights[i] * features[i];
  factor = std::clamp(factor, kNeighbourFactorMin, 1.0);
  return {factor, factor > 1 - kSmallLoss ? state_.small_error : state_.error};
}

}  // namespace gpushare::models
