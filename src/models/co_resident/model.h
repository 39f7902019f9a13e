// What two kernels keep of their speeds while workers of both share every SM, from their counters.
//
// A Gaussian process over measured pairs: a pair runs like pairs of similar kernels, and most like
// pairs of the same kernel with other neighbours (docs/models.md). A fit (fit.h) gives each
// measured pair a weight. A view of a kernel has the sums over all pairs that depend on this kernel
// alone, so that a prediction takes under a microsecond.
//
// Invariants: no speed exceeds what the kernel's own workers reach alone; a prediction allocates
// nothing. Threads: any; nothing changes after construction.
//
//   const Model model(FitPairs(samples));
//   const View a = model.ViewOf(kernel_a), b = model.ViewOf(kernel_b);  // allocates
//   const Speeds speeds = model.Predict({&a, 2}, {&b, 1});

#ifndef GPUSHARE_SRC_MODELS_CO_RESIDENT_MODEL_H_
#define GPUSHARE_SRC_MODELS_CO_RESIDENT_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/models/co_resident/process.h"

namespace gpushare::models::co_resident {

// Bounds of what a profile keeps. The catalogue on an H200 has 45 kernels with counters, 122
// numbers of their workers and 2,817 pairs of these.
inline constexpr size_t kKernelsMax = 64;
inline constexpr size_t kWorkersMax = 512;
// A fit keeps a square matrix of them: 128 MiB.
inline constexpr size_t kPairsMax = 4096;

// A kernel of the fit, as an index, with a number of workers.
struct Workers {
  int32_t kernel = 0;
  int32_t per_sm = 0;
};

// Two of these, as indices, and the weight of what was measured of the first.
struct WeightedPair {
  int32_t timed = 0;
  int32_t neighbour = 0;
  double weight = 0;
};

// What a profile keeps of a fit. Invariant: every index is one of the list that it points into, and
// workers are from 1 to workers_per_sm_max. No pairs: nothing is known.
struct State {
  std::vector<KernelFeatures> kernels;
  std::vector<Workers> workers;
  std::vector<WeightedPair> pairs;
  // One standard deviation of the relative error of a speed: of pairs that the fit did not see, and
  // of kernels that it did not see.
  double error = 1;
  double new_kernel_error = 1;

  bool known() const { return !pairs.empty(); }
};

// A kernel as a model sees it. Of a kernel without usable counters: not known.
struct View {
  bool known = false;
  bool measured = false;  // it is one of the fit
  bool timed = true;      // its saturating occupancy was timed; else like kernels tell it
  KernelFeatures features;
  // Rows have one number for each kernel of the fit, in the order of State::kernels, and zeros up
  // to the stride.
  std::vector<float> likeness;
  // A row for each two functions of the numbers of workers, the timed kernel's first.
  std::vector<float> as_timed;
  std::vector<float> as_neighbour;  // empty: not measured
  std::array<float, kWorkerFunctions> timed_level = {};
  std::array<float, kWorkerFunctions> neighbour_level = {};
};

struct Side {
  const View* view = nullptr;
  int32_t workers_per_sm = 0;
};

struct Speeds {
  // Of both sides, relative to alone with all workers: above 0 and at most 1. 0: unknown.
  std::array<double, 2> speed = {};
  double error = 1;  // one standard deviation of the relative error of a speed
  bool known = false;
};

class Model {
 public:
  Model() = default;
  explicit Model(State state);

  const State& state() const { return state_; }
  View ViewOf(const Kernel& kernel) const;
  // Of views that this model made.
  Speeds Predict(const Side& first, const Side& second) const;

 private:
  // Two functions of numbers of workers.
  static constexpr size_t kProducts = kWorkerFunctions * kWorkerFunctions;
  using Products = std::array<float, kProducts>;

  float& SumOf(size_t timed, size_t product, size_t neighbour) {
    return sums_[(timed * kProducts + product) * stride_ + neighbour];
  }
  void AddOwnSums(size_t kernel, View& view) const;
  float Weigh(const std::vector<float>& rows, const Products& products,
              const std::vector<float>& likeness) const;
  double RatioBeside(const View& timed, const WorkerValues& own, const View& neighbour,
                     const WorkerValues& others) const;

  State state_;
  WorkerFunctions functions_;
  size_t stride_ = 0;        // kernels, rounded up to whole vectors
  float level_ = 0;          // of pairs that are like no measured one
  std::vector<float> sums_;  // weights by timed kernel, functions and neighbour
  // By kernel: weights by the functions of its own workers.
  std::vector<std::array<float, kWorkerFunctions>> timed_levels_;
  std::vector<std::array<float, kWorkerFunctions>> neighbour_levels_;
};

}  // namespace gpushare::models::co_resident

#endif  // GPUSHARE_SRC_MODELS_CO_RESIDENT_MODEL_H_
