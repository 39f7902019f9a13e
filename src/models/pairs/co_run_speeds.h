// What runs showed of kernels whose workers share every SM, and how it corrects a prediction.
//
// SampleRouter adds the runs, CoSchedules corrects with them. A prediction with an error bar and
// the mean of the runs are two measurements of one speed: each counts by the inverse of its
// variance (Tacker VI-C for pairs). Runs that are a tenth off three times in a row begin the mean
// anew, and a prediction that the runs contradict counts no more. Invariants: at most kPairsMax
// pairs with kPointsMax numbers of workers each; the least recently observed pair is evicted;
// nothing allocates after the constructor, Restore included. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_PAIRS_CO_RUN_SPEEDS_H_
#define GPUSHARE_SRC_MODELS_PAIRS_CO_RUN_SPEEDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gpushare::models {

// The speed of a kernel relative to alone with all workers, over runs with the same workers.
struct CoRunMean {
  int64_t samples = 0;
  double speed = 0;
  double squared_error = 0;  // mean square of the relative errors of single runs
};

// Workers an SM of the kernel and of its neighbour.
struct CoRunPoint {
  int32_t workers = 0;
  int32_t neighbour_workers = 0;
  CoRunMean mean;
};

struct CoRunPair {
  uint32_t kernel = 0;
  uint32_t neighbour = 0;

  bool operator==(const CoRunPair&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const CoRunPair& pair) {
    return H::combine(std::move(state), pair.kernel, pair.neighbour);
  }
};

// A speed with one standard deviation of its relative error; an error of 1: unknown.
struct UncertainSpeed {
  double speed = 0;
  double error = 1;
};

// The mean of the runs as a measurement of the speed.
UncertainSpeed SpeedOf(const CoRunMean& runs);
// Both together, each by the inverse of its variance.
UncertainSpeed Combine(const UncertainSpeed& predicted, const UncertainSpeed& measured);
// The same with runs. Without any it is the prediction, and without a prediction the runs, once
// there are kRunsTrusted of them.
UncertainSpeed Combine(const UncertainSpeed& predicted, const CoRunMean& runs);

class CoRunSpeeds {
 public:
  static constexpr size_t kPairsMax = 512;
  static constexpr size_t kPointsMax = 4;
  static constexpr int64_t kRunsTrusted = 4;

  // All memory at once, as PairModel does it.
  CoRunSpeeds() : pairs_(2 * kPairsMax - 1) {}

  // Returns whether predictions have changed enough to plan anew.
  bool Observe(const CoRunPair& pair, int32_t workers, int32_t neighbour_workers, double speed);

  // Null: no run was with these workers.
  const CoRunMean* Find(const CoRunPair& pair, int32_t workers, int32_t neighbour_workers) const;
  // Of other workers of the pair, the closest of which there are two runs; null: none.
  const CoRunPoint* Nearest(const CoRunPair& pair, int32_t workers,
                            int32_t neighbour_workers) const;

  void Restore(const CoRunPair& pair, const CoRunPoint& point);
  // The kernel's identifier is that of another kernel from now on.
  void Forget(uint32_t kernel);

  bool empty() const { return pairs_.empty(); }
  template <class Visit>  // of a pair and a point, in no order
  void ForEach(const Visit& visit) const {
    for (const auto& [pair, points] : pairs_) {
      for (const Point& point : points) {
        if (point.value.mean.samples > 0) visit(pair, point.value);
      }
    }
  }

 private:
  struct Point {
    CoRunPoint value;
    int32_t far = 0;  // runs in a row; below 0: below the mean
    double far_sum = 0;
    double announced = 0;
    uint64_t observed = 0;  // the count of all runs then
  };
  using Points = std::array<Point, kPointsMax>;

  Point& PointFor(const CoRunPair& pair, int32_t workers, int32_t neighbour_workers);
  void MakeRoom();

  absl::flat_hash_map<CoRunPair, Points> pairs_;
  uint64_t observed_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PAIRS_CO_RUN_SPEEDS_H_
