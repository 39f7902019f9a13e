// The line of a kernel's durations alone on the whole device, from repeats of several sizes.
//
// A line forgets (linear_model.h). So one repeat of every size comes before the second of any: no
// size counts more because it was measured last. The error bar is the spread of the repeats around
// the line. Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_SOLO_LINE_H_
#define GPUSHARE_SRC_MODELS_TRAINING_SOLO_LINE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"
#include "src/models/durations/linear_model.h"

namespace gpushare::models {

struct SoloSize {
  int64_t block_tasks = 0;
  std::vector<int64_t> ns;  // repeats, in the order taken
};

LinearState TrainSolo(const core::DeviceProfile& device, const core::KernelDesc& kernel,
                      absl::Span<const SoloSize> sizes);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_SOLO_LINE_H_
