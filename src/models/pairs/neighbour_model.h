// What a kernel keeps of its speed beside a neighbour on the other SMs, from the neighbour's
// counters and its speed there.
//
// Each kernel has a model of its own: a line over what the neighbour moves, in total and for each
// of its SMs. Ridge regression fits it to the neighbours that the kernel was measured beside. The
// counters of any other neighbour then give its factor. Threads: one at a time for each model. A
// prediction allocates nothing.

#ifndef GPUSHARE_SRC_MODELS_PAIRS_NEIGHBOUR_MODEL_H_
#define GPUSHARE_SRC_MODELS_PAIRS_NEIGHBOUR_MODEL_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models {

// Shares of peak that the neighbour uses when it runs alone on the whole device, 0 to 1.
struct UseOfDevice {
  double dram = 0;
  double l2 = 0;
  double tensor = 0;
  double dram_write = 0;  // of dram, what writes take
};

UseOfDevice UseOf(const core::KernelCounters& counters);

// Where the neighbour runs.
struct NeighbourPlace {
  double share = 0;  // of the device's SMs
  double speed = 0;  // that it has there alone, of its speed on the whole device
};

struct NeighbourSample {
  UseOfDevice neighbour;
  NeighbourPlace place;
  double factor = 0;  // on the speed that the kernel has alone on its SMs
};

struct FactorPrediction {
  double factor = 1;
  double error = 1;  // one standard deviation; 1: nothing is known
};

// What a profile keeps of a model. No weights: nothing is known.
struct NeighbourState {
  static constexpr size_t kFeatures = 10;
  bool known = false;
  std::array<double, kFeatures> weights = {};
  double error = 1;        // one standard deviation, of factors that lose more than kSmallLoss
  double small_error = 1;  // of those that lose less: beside work that hardly uses DRAM or L2
};

class NeighbourModel {
 public:
  // Replaces what was fitted before. Samples that are not finite do not count; without enough of
  // them nothing is known.
  void Fit(absl::Span<const NeighbourSample> samples);

  bool known() const { return state_.known; }
  const NeighbourState& state() const { return state_; }
  // `state` was checked by the caller: every value is finite.
  void Restore(const NeighbourState& state) { state_ = state; }
  // Between kNeighbourFactorMin and 1; exactly 1 beside a neighbour that uses less than kNoUse.
  FactorPrediction Predict(const UseOfDevice& neighbour, const NeighbourPlace& place) const;

 private:
  using Features = std::array<double, NeighbourState::kFeatures>;
  static Features FeaturesOf(const UseOfDevice& use, const NeighbourPlace& place);

  NeighbourState state_;
};

// The least factor that is predicted.
inline constexpr double kNeighbourFactorMin = 0.05;
// A factor above 1 less this is a small loss, and has an error bar of its own.
inline constexpr double kSmallLoss = 0.05;
// A neighbour that uses less of DRAM and less of L2 costs nothing: 86 rows of such pairs on an H200
// are within 0.3 % of 1.
inline constexpr double kNoUse = 0.01;
// Samples without which nothing is known.
inline constexpr size_t kNeighbourSamplesMin = 12;

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PAIRS_NEIGHBOUR_MODEL_H_
