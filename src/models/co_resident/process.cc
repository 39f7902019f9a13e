// Features and likeness; see process.h.

#include "src/models/co_resident/process.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models::co_resident {
namespace {

// These and the variances were chosen by errors of an H200's training pairs, each left out in turn;
// docs/models.md says what else was in view. There the mean error moves by at most 0.2 points when
// one is doubled or halved.

// Counters that are no shares count less than those that are.
constexpr double kScale = 0.33;
// Distance of two numbers of workers, as shares of the most, over which their speeds differ.
constexpr double kWorkersLength = 0.5;

// Distance of counters over which saturating occupancies differ. Of an H200's 45 kernels, each left
// out with a fifth of them, the estimate is off by 25 % in the mean; by 25 to 27 % from 0.05 to
// 0.6.
constexpr double kOccupancyLength = 0.4;

// Square of a distance. A profile keeps features to six digits after the point.
constexpr double kRounding = 1e-9;

// Workers over the most that an SM holds, and the speed of so many alone.
struct Place {
  double share = 0;
  double alone = 0;
};
// Chosen one after the other, each as the one that the others describe worst, from a grid of
// eighths. On an H200's training pairs four of them cost 0.1 points of error against all places,
// and five cost none.
constexpr std::array<Place, kWorkerFunctions> kPlaces = {
    {{0.125, 0.125}, {1, 1}, {0.125, 1}, {0.5, 0.5}, {0.625, 1}}};

double Square(double value) { return value * value; }

double LikenessOf(const Place& a, const Place& b) {
  const double distance = Square(a.share - b.share) + Square(a.alone - b.alone);
  return std::exp(-distance / Square(kWorkersLength) / 2);
}

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

double DistanceSquared(const KernelFeatures& a, const KernelFeatures& b) {
  double sum = 0;
  for (size_t i = 0; i < kFeatures; ++i) sum += Square(a.values[i] - b.values[i]);
  return sum;
}

}  // namespace

bool MakeFeatures(const Kernel& kernel, KernelFeatures& out) {
  const core::KernelCounters& counters = kernel.counters;
  const double saturating = kernel.saturating_occupancy;
  if (!IsUsable(counters) || kernel.workers_per_sm_max < 1) return false;
  if (!(saturating > 0 && saturating <= 1)) return false;
  const double memory_share = counters.memory_instructions / counters.instructions;
  out.values = {counters.issue,
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
                saturating};
  out.workers_per_sm_max = kernel.workers_per_sm_max;
  return true;
}

double SpeedAlone(const KernelFeatures& kernel, int32_t workers_per_sm) {
  const int32_t most = kernel.workers_per_sm_max;
  const double saturating = kernel.values.back();
  if (most < 1 || workers_per_sm < 0 || workers_per_sm > most) return 0;
  if (!(saturating > 0)) return 0;
  return std::min(1.0, static_cast<double>(workers_per_sm) / most / saturating);
}

double Likeness(const KernelFeatures& a, const KernelFeatures& b) {
  return std::exp(-DistanceSquared(a, b) / 2);
}

bool IsSame(const KernelFeatures& a, const KernelFeatures& b) {
  return a.workers_per_sm_max == b.workers_per_sm_max && DistanceSquared(a, b) < kRounding;
}

double OccupancyOfLike(const KernelFeatures& kernel, absl::Span<const KernelFeatures> kernels) {
  double weights = 0;
  double sum = 0;
  for (const KernelFeatures& other : kernels) {
    double distance = 0;
    for (size_t i = 0; i + 1 < kFeatures; ++i) {  // all but the occupancy
      distance += Square(kernel.values[i] - other.values[i]);
    }
    const double weight = std::exp(-distance / Square(kOccupancyLength) / 2);
    weights += weight;
    sum += weight * std::log(other.values.back());
  }
  // Beside kernels that are all far away, none counts.
  return weights > 0 ? std::exp(sum / weights) : 1;
}

double Product(const WorkerValues& a, const WorkerValues& b) {
  double sum = 0;
  for (size_t i = 0; i < kWorkerFunctions; ++i) sum += a[i] * b[i];
  return sum;
}

// The likeness of the places is L L', and the functions are the inverse of L times the likeness to
// them: their product is exact at the places.
WorkerFunctions::WorkerFunctions() {
  std::array<WorkerValues, kWorkerFunctions> factor = {};
  for (size_t i = 0; i < kWorkerFunctions; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double left = LikenessOf(kPlaces[i], kPlaces[j]) - Product(factor[i], factor[j]);
      factor[i][j] = i == j ? std::sqrt(left) : left / factor[j][j];
    }
    for (size_t column = 0; column <= i; ++column) {
      double sum = i == column ? 1 : 0;
      for (size_t j = 0; j < i; ++j) sum -= factor[i][j] * inverse_[j][column];
      inverse_[i][column] = sum / factor[i][i];
    }
  }
}

WorkerValues WorkerFunctions::Of(const KernelFeatures& kernel, int32_t workers_per_sm) const {
  const Place place = {static_cast<double>(workers_per_sm) / kernel.workers_per_sm_max,
                       SpeedAlone(kernel, workers_per_sm)};
  WorkerValues likeness;
  for (size_t i = 0; i < kWorkerFunctions; ++i) likeness[i] = LikenessOf(place, kPlaces[i]);
  WorkerValues values;
  for (size_t i = 0; i < kWorkerFunctions; ++i) values[i] = Product(inverse_[i], likeness);
  return values;
}

double RatioOf(double root) {
  return std::clamp(Square(std::max(0.0, root + kMiddle)), kRatioMin, 1.0);
}

}  // namespace gpushare::models::co_resident
