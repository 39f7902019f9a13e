// What two kernels keep of their speeds while workers of both share every SM, from their counters.
//
// A Gaussian process over measured pairs: a pair runs like pairs of similar kernels, and most like
// pairs of the same kernel with other neighbours (docs/models.md). Kernels are told apart by their
// counters. Invariant: no speed exceeds what the kernel's own workers reach alone. Threads: one at
// a time for each model. A prediction allocates nothing.
//
//   CoResidentModel model;
//   model.Fit(samples);  // once: seconds and tens of MB for thousands of samples
//   const CoResidentSpeeds speeds = model.Predict({a, 2}, {b, 1});

#ifndef GPUSHARE_SRC_MODELS_CO_RESIDENT_MODEL_H_
#define GPUSHARE_SRC_MODELS_CO_RESIDENT_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models {

// Of core::KernelDesc what the model uses.
struct CoResidentKernel {
  core::KernelCounters counters;
  double saturating_occupancy = 1;  // of core::SimulationRecord
  int32_t workers_per_sm_max = 0;
};

struct CoResidentSide {
  CoResidentKernel kernel;
  int32_t workers_per_sm = 0;
};

struct CoResidentSample {
  CoResidentSide timed;
  CoResidentSide neighbour;
  double speed = 0;  // of the timed kernel, relative to alone with workers_per_sm_max
};

struct CoResidentSpeeds {
  // Of both sides, relative to alone with workers_per_sm_max: above 0 and at most 1; 0 of a side
  // without workers.
  std::array<double, 2> speed = {};
  double error = 1;    // one standard deviation of the relative error of a speed
  bool known = false;  // false: not enough samples; the speeds are 0
};

// Speed of `workers_per_sm` workers an SM without a neighbour. Of impossible numbers 0.
double SpeedAlone(const CoResidentSide& side);

class CoResidentModel {
 public:
  // Replaces what was fitted before. Samples with impossible numbers or without counters do not
  // count, nor do those beyond kCoResidentSamplesMax; with fewer than kCoResidentSamplesMin nothing
  // is known.
  void Fit(absl::Span<const CoResidentSample> samples);

  bool known() const { return known_; }
  CoResidentSpeeds Predict(const CoResidentSide& first, const CoResidentSide& second) const;

 private:
  static constexpr size_t kFeatures = 14;
  static constexpr size_t kStatesMax = 512;
  // A kernel with a number of workers.
  struct State {
    std::array<double, kFeatures> kernel = {};
    double share = 0;  // of workers_per_sm_max
    double alone = 0;  // speed
  };
  // Two states and what their sample says of the first, as an index of states_.
  struct Point {
    size_t timed = 0;
    size_t neighbour = 0;
    double root = 0;    // of the speed over that alone, less kMiddle
    double weight = 0;  // of the fitted process
  };
  // How much a state is like another one.
  struct Likeness {
    double all = 0;     // kernel and workers
    double itself = 0;  // workers, if the kernel is the same
  };

  static bool MakeState(const CoResidentSide& side, State& state);
  static Likeness Compare(const State& a, const State& b);
  static double Covariance(const Likeness& timed, const Likeness& neighbour);
  static double RatioOf(double root);

  size_t IndexOf(const State& state);
  void AddPoints(absl::Span<const CoResidentSample> samples);
  // Sets the weights of points_[chosen]; false: the samples contradict every number.
  bool Solve(absl::Span<const size_t> chosen);
  // Relative error of pairs that do not train, over the others.
  double LeftOutError();
  double RatioBeside(absl::Span<const Likeness> timed, absl::Span<const Likeness> neighbour) const;

  bool known_ = false;
  double error_ = 1;
  std::vector<State> states_;
  std::vector<Point> points_;
};

inline constexpr size_t kCoResidentSamplesMin = 24;
// A fit keeps a square matrix of them: 128 MiB. The catalogue on an H200 has 2,817 samples.
inline constexpr size_t kCoResidentSamplesMax = 4096;
// The least part of its speed alone that a kernel keeps beside a neighbour.
inline constexpr double kCoResidentRatioMin = 0.02;

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_CO_RESIDENT_MODEL_H_
