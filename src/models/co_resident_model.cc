// A Gaussian process over pairs of kernels; see co_resident_model.h.

#include "src/models/co_resident_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpushare::models {
namespace {

// Chosen by errors of an H200's training pairs, each left out in turn; docs/models.md says what
// else was in view. There the mean error moves by at most 0.2 points when one is doubled or halved.

// Distance of two numbers of workers, as shares of the most, over which their speeds differ.
constexpr double kWorkersLength = 0.5;
// Variances of the parts of the process, and of one measurement.
constexpr double kSimilarPair = 2;
constexpr double kSameKernel = 0.5;
constexpr double kOwnLevel = 0.5;
constexpr double kNoise = 0.005;
// Speeds are predicted as square roots: their errors are closest to relative ones.
constexpr double kMiddle = 0.775;
// Counters that are no shares count less than those that are.
constexpr double kScale = 0.33;

// Ratios above 1 occur, because launches alone have a tail of few workers.
constexpr double kSpeedMax = 2;

// A quarter of the pairs measures the error of a fit to the others.
constexpr size_t kLeftOutOf = 4;

bool IsShare(double value) { return value >= 0 && value <= 2; }  // false for NaN

bool IsUsable(const core::KernelCounters& counters) {
  return counters.present() && std::isfinite(counters.instructions) &&
         counters.memory_instructions >= 0 && std::isfinite(counters.memory_instructions) &&
         counters.sectors_per_request >= 0 && std::isfinite(counters.sectors_per_request) &&
         IsShare(counters.issue) && IsShare(counters.fma) && IsShare(counters.alu) &&
         IsShare(counters.tensor) && IsShare(counters.special) && IsShare(counters.lsu) &&
         IsShare(counters.shared) && IsShare(counters.l1) && IsShare(counters.l2) &&
         IsShare(counters.dram);
}

double Square(double value) { return value * value; }

}  // namespace

double SpeedAlone(const CoResidentSide& side) {
  const int32_t most = side.kernel.workers_per_sm_max;
  const double saturating = side.kernel.saturating_occupancy;
  if (most < 1 || side.workers_per_sm < 0 || side.workers_per_sm > most) return 0;
  if (!(saturating > 0 && saturating <= 1)) return 0;
  return std::min(1.0, static_cast<double>(side.workers_per_sm) / most / saturating);
}

bool CoResidentModel::MakeState(const CoResidentSide& side, State& state) {
  const core::KernelCounters& counters = side.kernel.counters;
  state.alone = SpeedAlone(side);
  if (!(state.alone > 0) || !IsUsable(counters)) return false;
  state.share = static_cast<double>(side.workers_per_sm) / side.kernel.workers_per_sm_max;
  const double memory_share = counters.memory_instructions / counters.instructions;
  state.kernel = {counters.issue,
                  counters.fma,
                  counters.alu,
                  counters.tensor,
                  counters.special,
                  counters.lsu,
                  counters.shared,
                  counters.l1,
                  counters.l2,
                  counters.dram,
                  kScale * std::min(1.0, 5 * memory_share),
                  kScale * std::log(std::max(1.0, counters.sectors_per_request)) / 3,
                  kScale * std::log(std::max(1.0, counters.instructions)) / 4,
                  side.kernel.saturating_occupancy};
  return true;
}

CoResidentModel::Likeness CoResidentModel::Compare(const State& a, const State& b) {
  double kernels = 0;
  for (size_t i = 0; i < kFeatures; ++i) kernels += Square(a.kernel[i] - b.kernel[i]);
  const double workers =
      (Square(a.share - b.share) + Square(a.alone - b.alone)) / Square(kWorkersLength);
  // Only a kernel itself has exactly its counters.
  return {std::exp(-(kernels + workers) / 2), kernels > 0 ? 0 : std::exp(-workers / 2)};
}

double CoResidentModel::Covariance(const Likeness& timed, const Likeness& neighbour) {
  return 1 + kSimilarPair * timed.all * neighbour.all +
         kSameKernel * (timed.itself * neighbour.all + timed.all * neighbour.itself) +
         kOwnLevel * (timed.itself + neighbour.itself);
}

double CoResidentModel::RatioOf(double root) {
  return std::clamp(Square(std::max(0.0, root + kMiddle)), kCoResidentRatioMin, 1.0);
}

size_t CoResidentModel::IndexOf(const State& state) {
  const auto same = [&](const State& one) {
    return one.kernel == state.kernel && one.share == state.share && one.alone == state.alone;
  };
  const auto found = std::find_if(states_.begin(), states_.end(), same);
  if (found == states_.end() && states_.size() < kStatesMax) {
    states_.push_back(state);
    return states_.size() - 1;
  }
  return static_cast<size_t>(found - states_.begin());
}

void CoResidentModel::AddPoints(absl::Span<const CoResidentSample> samples) {
  states_.clear();
  points_.clear();
  for (const CoResidentSample& sample : samples) {
    State timed;
    State neighbour;
    if (!(sample.speed > 0 && sample.speed <= kSpeedMax)) continue;
    if (!MakeState(sample.timed, timed) || !MakeState(sample.neighbour, neighbour)) continue;
    const Point point = {IndexOf(timed), IndexOf(neighbour),
                         std::sqrt(sample.speed / timed.alone) - kMiddle, 0};
    if (std::max(point.timed, point.neighbour) >= kStatesMax) continue;
    points_.push_back(point);
    if (points_.size() == kCoResidentSamplesMax) return;
  }
}

bool CoResidentModel::Solve(absl::Span<const size_t> chosen) {
  std::vector<Likeness> likeness(states_.size() * states_.size());
  for (size_t a = 0; a < states_.size(); ++a) {
    for (size_t b = 0; b < states_.size(); ++b) {
      likeness[a * states_.size() + b] = Compare(states_[a], states_[b]);
    }
  }
  const auto size = static_cast<Eigen::Index>(chosen.size());
  Eigen::MatrixXd covariance(size, size);
  Eigen::VectorXd roots(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const Point& a = points_[chosen[static_cast<size_t>(i)]];
    roots(i) = a.root;
    for (Eigen::Index j = 0; j <= i; ++j) {
      const Point& b = points_[chosen[static_cast<size_t>(j)]];
      covariance(i, j) = Covariance(likeness[a.timed * states_.size() + b.timed],
                                    likeness[a.neighbour * states_.size() + b.neighbour]);
    }
    covariance(i, i) += kNoise;
  }
  // In place: the matrix is by far the largest thing here.
  Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factors(covariance);
  const Eigen::VectorXd weights = factors.solve(roots);
  if (factors.info() != Eigen::Success || !weights.allFinite()) return false;
  for (Point& point : points_) point.weight = 0;
  for (Eigen::Index i = 0; i < size; ++i) {
    points_[chosen[static_cast<size_t>(i)]].weight = weights(i);
  }
  return true;
}

double CoResidentModel::RatioBeside(absl::Span<const Likeness> timed,
                                    absl::Span<const Likeness> neighbour) const {
  double root = 0;
  for (const Point& point : points_) {
    root += point.weight * Covariance(timed[point.timed], neighbour[point.neighbour]);
  }
  return RatioOf(root);
}

double CoResidentModel::LeftOutError() {
  // Both orders and all numbers of workers of two kernels stay on one side.
  std::vector<std::array<size_t, 2>> pairs;
  std::vector<size_t> trains;
  std::vector<size_t> left_out;
  const auto kernel_of = [&](size_t state) {
    const auto same = [&](const State& one) { return one.kernel == states_[state].kernel; };
    return static_cast<size_t>(std::find_if(states_.begin(), states_.end(), same) -
                               states_.begin());
  };
  for (size_t i = 0; i < points_.size(); ++i) {
    const size_t a = kernel_of(points_[i].timed);
    const size_t b = kernel_of(points_[i].neighbour);
    const std::array<size_t, 2> pair = {std::min(a, b), std::max(a, b)};
    const auto found = std::find(pairs.begin(), pairs.end(), pair);
    const auto number = static_cast<size_t>(found - pairs.begin());
    if (found == pairs.end()) pairs.push_back(pair);
    (number % kLeftOutOf == kLeftOutOf - 1 ? left_out : trains).push_back(i);
  }
  if (left_out.empty() || !Solve(trains)) return 1;
  double squares = 0;
  std::vector<Likeness> timed(states_.size());
  std::vector<Likeness> neighbour(states_.size());
  for (const size_t i : left_out) {
    for (size_t s = 0; s < states_.size(); ++s) {
      timed[s] = Compare(states_[points_[i].timed], states_[s]);
      neighbour[s] = Compare(states_[points_[i].neighbour], states_[s]);
    }
    squares += Square(RatioBeside(timed, neighbour) / Square(points_[i].root + kMiddle) - 1);
  }
  return std::min(1.0, std::sqrt(squares / static_cast<double>(left_out.size())));
}

void CoResidentModel::Fit(absl::Span<const CoResidentSample> samples) {
  known_ = false;
  AddPoints(samples);
  if (points_.size() < kCoResidentSamplesMin) return;
  error_ = LeftOutError();
  std::vector<size_t> all(points_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  known_ = Solve(all);
}

CoResidentSpeeds CoResidentModel::Predict(const CoResidentSide& first,
                                          const CoResidentSide& second) const {
  if (first.workers_per_sm == 0 || second.workers_per_sm == 0) {
    const std::array<double, 2> alone = {SpeedAlone(first), SpeedAlone(second)};
    return {alone, 0, std::max(alone[0], alone[1]) > 0};
  }
  State a;
  State b;
  if (!known_ || !MakeState(first, a) || !MakeState(second, b)) return {};
  std::array<Likeness, kStatesMax> like_a;
  std::array<Likeness, kStatesMax> like_b;
  for (size_t s = 0; s < states_.size(); ++s) {
    like_a[s] = Compare(a, states_[s]);
    like_b[s] = Compare(b, states_[s]);
  }
  return {
      {a.alone * RatioBeside(like_a, like_b), b.alone * RatioBeside(like_b, like_a)}, error_, true};
}

}  // namespace gpushare::models
