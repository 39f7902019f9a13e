// A kernel's durations alone on the whole device, from repeats of several sizes.
//
// Four forms are tried: over block tasks or over whole rounds of them, as a line or with the ratios
// of the measured sizes to it. The one with the least error where each size in turn is left out is
// kept (Baymax 4.4); a line over block tasks where there are fewer than kSizesLeast sizes, and no
// ratios where there are more than DurationShape::kRatiosMax or one is beyond kRatioMax.
//
// A line forgets (linear_model.h). So one repeat of every size comes before the second of any: no
// size counts more because it was measured last. The error bar is the spread of the repeats around
// the prediction; with ratios, which pass through every size, at least the error of left-out sizes.
// Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_TRAIN_DURATIONS_H_
#define GPUSHARE_SRC_MODELS_TRAINING_TRAIN_DURATIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/models/durations/kernel_durations.h"

namespace gpushare::models {

struct SoloSize {
  int64_t block_tasks = 0;
  std::vector<int64_t> ns;  // repeats, in the order taken
};

// A size that was measured before gets more repeats.
void AddRepeats(int64_t block_tasks, absl::Span<const double> ns, std::vector<SoloSize>& sizes);

struct TrainedDurations {
  LinearState line;
  DurationShape shape;
};

inline constexpr size_t kSizesLeast = 4;

// What is expected of a size before anything was measured.
using PriorNs = absl::FunctionRef<double(int64_t block_tasks)>;

// A line over block tasks, whatever its error.
LinearState TrainLine(absl::Span<const SoloSize> sizes, PriorNs prior_ns);

// `round`: block tasks of a round, the SMs of the device.
TrainedDurations TrainDurations(absl::Span<const SoloSize> sizes, int32_t round, PriorNs prior_ns);

// By the prior of `kernel`.
TrainedDurations TrainDurations(const core::DeviceProfile& device, const core::KernelDesc& kernel,
                                absl::Span<const SoloSize> sizes);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_TRAIN_DURATIONS_H_
