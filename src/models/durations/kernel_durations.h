// Durations of a kernel alone on the whole device: a line over its size, and what measured sizes
// have beyond the line.
//
// The line is learned online (linear_model.h). The shape comes from a calibration, and no sample
// changes it: the size may count in whole rounds of block tasks, because the last round takes as
// long as a full one, and ratios of measured and line at the nearest sizes are interpolated (the
// nearest neighbours of Baymax 4.3 in one dimension). Samples train the line without the shape, so
// that line and shape together follow a drift.
// Threads: the scheduler's only. Predict, Observe and Restore allocate nothing.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_KERNEL_DURATIONS_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_KERNEL_DURATIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/models/durations/linear_model.h"

namespace gpushare::models {

struct SizeRatio {
  double block_tasks = 0;
  double ratio = 1;  // measured over the line
};

struct DurationShape {
  static constexpr size_t kRatiosMax = 16;
  static constexpr double kRatioMax = 10;  // and its inverse the least: beyond, a line says nothing

  int32_t round = 0;              // block tasks of a round; 0: sizes count as they are
  std::vector<SizeRatio> ratios;  // in the order of their sizes; none: 1 at every size

  bool IsLine() const { return round <= 0 && ratios.empty(); }
};

class KernelDurations {
 public:
  core::Prediction Predict(int64_t block_tasks, double prior_ns) const;
  // One sample of the kernel alone. Returns whether predictions may have moved by more than the
  // refit threshold.
  bool Observe(int64_t block_tasks, double measured_ns, double prior_ns);

  const LinearState& line() const { return line_.state(); }
  DurationShape shape() const;
  // Ratios that are not above 0 or not in order do not count, and none beyond kRatiosMax.
  void Restore(const LinearState& line, const DurationShape& shape);

 private:
  double SizeOf(int64_t block_tasks) const;
  double RatioAt(int64_t block_tasks) const;

  struct Known {
    double size = 0;
    double log_size = 0;
    double ratio = 1;
  };

  LinearModel line_;
  int32_t round_ = 0;
  size_t known_count_ = 0;
  std::array<Known, DurationShape::kRatiosMax> known_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_KERNEL_DURATIONS_H_
