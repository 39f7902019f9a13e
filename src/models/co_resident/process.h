// The Gaussian process over pairs of kernels: what it compares, and by which numbers.
//
// A kernel is its counters and how its workers use an SM. Two kernels are as alike as their
// features are close; two numbers of workers are compared by a few smooth functions of both, so
// that sums over measured pairs can be made ahead (model.h). Pure functions. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_CO_RESIDENT_PROCESS_H_
#define GPUSHARE_SRC_MODELS_CO_RESIDENT_PROCESS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models::co_resident {

// Of core::KernelDesc what the process compares.
struct Kernel {
  core::KernelCounters counters;
  double saturating_occupancy = 1;  // of core::SimulationRecord; 0, in a view: nobody timed it
  int32_t workers_per_sm_max = 0;
};

inline constexpr size_t kFeatures = 14;
struct KernelFeatures {
  // Shares of peak, scaled counters and, last, the saturating occupancy.
  std::array<double, kFeatures> values = {};
  int32_t workers_per_sm_max = 0;
};

// False: impossible numbers, or no counters.
bool MakeFeatures(const Kernel& kernel, KernelFeatures& out);
// Speed of so many workers an SM without a neighbour, relative to all; 0 of impossible numbers.
double SpeedAlone(const KernelFeatures& kernel, int32_t workers_per_sm);

// Above 0 and at most 1.
double Likeness(const KernelFeatures& a, const KernelFeatures& b);
// Rounding aside, only a kernel itself has its counters.
bool IsSame(const KernelFeatures& a, const KernelFeatures& b);

// The saturating occupancy of a kernel of which nobody timed it, from its counters: the mean of the
// logarithms of what kernels have, by how alike their counters are.
double OccupancyOfLike(const KernelFeatures& kernel, absl::Span<const KernelFeatures> kernels);

// Two numbers of workers are as alike as the product of their functions.
inline constexpr size_t kWorkerFunctions = 5;
using WorkerValues = std::array<double, kWorkerFunctions>;
double Product(const WorkerValues& a, const WorkerValues& b);

class WorkerFunctions {
 public:
  WorkerFunctions();
  WorkerValues Of(const KernelFeatures& kernel, int32_t workers_per_sm) const;

 private:
  // Inverse of the Cholesky factor of the likeness of the points that the functions belong to.
  std::array<WorkerValues, kWorkerFunctions> inverse_ = {};
};

// Variances of the parts of the process, and of one measurement.
inline constexpr double kSimilarPair = 2;
inline constexpr double kSameKernel = 0.5;
inline constexpr double kOwnLevel = 0.5;
inline constexpr double kNoise = 0.005;

// The process is over roots of the part of its speed that a kernel keeps, less kMiddle: their
// errors are closest to relative ones.
inline constexpr double kMiddle = 0.775;
// The least part that is predicted.
inline constexpr double kRatioMin = 0.02;
double RatioOf(double root);

}  // namespace gpushare::models::co_resident

#endif  // GPUSHARE_SRC_MODELS_CO_RESIDENT_PROCESS_H_
