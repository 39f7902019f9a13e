// Weights of measured pairs; see fit.h.

#include "src/models/co_resident/fit.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace gpushare::models::co_resident {
namespace {

// Ratios above 1 occur, because launches alone have a tail of few workers.
constexpr double kSpeedMax = 2;
// A quarter of the pairs, or of the kernels, measures the error of a fit to the others.
constexpr size_t kLeftOutOf = 4;
// Digits that a profile keeps. Fewer of the weights cost accuracy: four cost 0.01 points, three
// 0.3.
constexpr double kWeightSteps = 1e5;
constexpr double kFeatureSteps = 1e6;

double Square(double value) { return value * value; }
double Rounded(double value, double steps) { return std::round(value * steps) / steps; }

// Two workers, as indices, and what was measured of the first.
struct Row {
  size_t timed = 0;
  size_t neighbour = 0;
  double root = 0;
};

class Fitter {
 public:
  explicit Fitter(absl::Span<const Sample> samples) {
    for (const Sample& sample : samples) {
      if (rows_.size() < kPairsMax) Add(sample);
    }
    for (const Workers& workers : state_.workers) {
      values_.push_back(functions_.Of(KernelOf(workers), workers.per_sm));
    }
    for (size_t a = 0; a < values_.size(); ++a) {
      for (size_t b = 0; b < values_.size(); ++b) likeness_.push_back(Compare(a, b));
    }
  }

  void MeasureErrors() {
    if (rows_.size() < kSamplesMin) return;
    state_.error = LeftOutError(HalvesByPair());
    state_.new_kernel_error = LeftOutError(HalvesByKernel());
  }

  State Fit() {
    if (rows_.size() < kSamplesMin) return {};
    std::vector<size_t> all(rows_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    const std::vector<double> weights = Solve(all);
    for (size_t i = 0; i < weights.size(); ++i) {
      state_.pairs.push_back({static_cast<int32_t>(rows_[i].timed),
                              static_cast<int32_t>(rows_[i].neighbour),
                              Rounded(weights[i], kWeightSteps)});
    }
    return std::move(state_);
  }

 private:
  // How much workers are like others.
  struct Alike {
    double all = 0;     // kernel and number
    double itself = 0;  // number, if the kernel is the same
  };
  struct Halves {
    std::vector<size_t> trains;
    std::vector<size_t> left_out;
  };

  const KernelFeatures& KernelOf(const Workers& workers) const {
    return state_.kernels[static_cast<size_t>(workers.kernel)];
  }

  static bool MakeSide(const SampleSide& side, KernelFeatures& features) {
    if (!MakeFeatures(side.kernel, features)) return false;
    for (double& value : features.values) value = Rounded(value, kFeatureSteps);
    return SpeedAlone(features, side.workers_per_sm) > 0;
  }

  // Adds what is not known yet. False: there is no room for it.
  bool Find(const KernelFeatures& features, int32_t workers_per_sm, size_t& found) {
    const auto kernel =
        std::find_if(state_.kernels.begin(), state_.kernels.end(),
                     [&](const KernelFeatures& known) { return IsSame(known, features); });
    const Workers workers = {static_cast<int32_t>(kernel - state_.kernels.begin()), workers_per_sm};
    const auto known =
        std::find_if(state_.workers.begin(), state_.workers.end(), [&](const Workers& one) {
          return one.kernel == workers.kernel && one.per_sm == workers.per_sm;
        });
    found = static_cast<size_t>(known - state_.workers.begin());
    if (known != state_.workers.end()) return true;
    if (state_.workers.size() == kWorkersMax) return false;
    if (kernel == state_.kernels.end()) {
      if (state_.kernels.size() == kKernelsMax) return false;
      state_.kernels.push_back(features);
    }
    state_.workers.push_back(workers);
    return true;
  }

  void Add(const Sample& sample) {
    KernelFeatures timed;
    KernelFeatures neighbour;
    if (!(sample.speed > 0 && sample.speed <= kSpeedMax)) return;
    if (!MakeSide(sample.timed, timed) || !MakeSide(sample.neighbour, neighbour)) return;
    const int32_t workers = sample.timed.workers_per_sm;
    Row row;
    if (!Find(timed, workers, row.timed)) return;
    if (!Find(neighbour, sample.neighbour.workers_per_sm, row.neighbour)) return;
    row.root = std::sqrt(sample.speed / SpeedAlone(timed, workers)) - kMiddle;
    rows_.push_back(row);
  }

  Alike Compare(size_t a, size_t b) const {
    const Workers& one = state_.workers[a];
    const Workers& other = state_.workers[b];
    const double workers = Product(values_[a], values_[b]);
    return {Likeness(KernelOf(one), KernelOf(other)) * workers,
            one.kernel == other.kernel ? workers : 0};
  }

  double Covariance(const Row& a, const Row& b) const {
    const Alike& timed = likeness_[a.timed * values_.size() + b.timed];
    const Alike& neighbour = likeness_[a.neighbour * values_.size() + b.neighbour];
    return 1 + kSimilarPair * timed.all * neighbour.all +
           kSameKernel * (timed.itself * neighbour.all + timed.all * neighbour.itself) +
           kOwnLevel * (timed.itself + neighbour.itself);
  }

  // Weights of the chosen rows; empty: the samples contradict every number.
  std::vector<double> Solve(absl::Span<const size_t> chosen) const {
    const auto size = static_cast<Eigen::Index>(chosen.size());
    Eigen::MatrixXd covariance(size, size);
    Eigen::VectorXd roots(size);
    for (Eigen::Index i = 0; i < size; ++i) {
      const Row& row = rows_[chosen[static_cast<size_t>(i)]];
      roots(i) = row.root;
      for (Eigen::Index j = 0; j <= i; ++j) {
        covariance(i, j) = Covariance(row, rows_[chosen[static_cast<size_t>(j)]]);
      }
      covariance(i, i) += kNoise;
    }
    // In place: the matrix is by far the largest thing here.
    const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factors(covariance);
    const Eigen::VectorXd weights = factors.solve(roots);
    if (factors.info() != Eigen::Success || !weights.allFinite()) return {};
    return {weights.begin(), weights.end()};
  }

  // Both orders and all numbers of workers of two kernels stay on one side.
  Halves HalvesByPair() const {
    std::vector<std::array<int32_t, 2>> pairs;
    Halves halves;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const int32_t a = state_.workers[rows_[i].timed].kernel;
      const int32_t b = state_.workers[rows_[i].neighbour].kernel;
      const std::array<int32_t, 2> pair = {std::min(a, b), std::max(a, b)};
      const auto found = std::find(pairs.begin(), pairs.end(), pair);
      const auto number = static_cast<size_t>(found - pairs.begin());
      if (found == pairs.end()) pairs.push_back(pair);
      (IsLeftOut(number) ? halves.left_out : halves.trains).push_back(i);
    }
    return halves;
  }
  Halves HalvesByKernel() const {
    Halves halves;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const bool is_new = IsLeftOut(static_cast<size_t>(state_.workers[rows_[i].timed].kernel)) ||
                          IsLeftOut(static_cast<size_t>(state_.workers[rows_[i].neighbour].kernel));
      (is_new ? halves.left_out : halves.trains).push_back(i);
    }
    return halves;
  }
  static bool IsLeftOut(size_t number) { return number % kLeftOutOf == kLeftOutOf - 1; }

  // Relative, one standard deviation.
  double LeftOutError(const Halves& halves) const {
    if (halves.left_out.empty() || halves.trains.empty()) return 1;
    const std::vector<double> weights = Solve(halves.trains);
    if (weights.empty()) return 1;
    double squares = 0;
    for (const size_t i : halves.left_out) {
      double root = 0;
      for (size_t j = 0; j < weights.size(); ++j) {
        root += weights[j] * Covariance(rows_[i], rows_[halves.trains[j]]);
      }
      squares += Square(RatioOf(root) / Square(rows_[i].root + kMiddle) - 1);
    }
    return std::min(1.0, std::sqrt(squares / static_cast<double>(halves.left_out.size())));
  }

  State state_;
  WorkerFunctions functions_;
  std::vector<Row> rows_;
  std::vector<WorkerValues> values_;  // of each of state_.workers
  std::vector<Alike> likeness_;       // of each two
};

}  // namespace

State FitPairs(absl::Span<const Sample> samples) {
  Fitter fitter(samples);
  fitter.MeasureErrors();
  return fitter.Fit();
}

State FitWeights(absl::Span<const Sample> samples) { return Fitter(samples).Fit(); }

}  // namespace gpushare::models::co_resident
