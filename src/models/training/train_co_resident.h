// What kernels keep of their speeds while they share every SM, fitted to the rows of a samples file
// (co_resident/). Called by TrainProfile. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_TRAIN_CO_RESIDENT_H_
#define GPUSHARE_SRC_MODELS_TRAINING_TRAIN_CO_RESIDENT_H_

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/models/learned/learned.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

// Counters and workers are those of `kernels`, as a scheduler will see them. Without enough rows
// `learned` keeps what it has.
void TrainCoResident(const Samples& samples, absl::Span<const core::KernelDesc> kernels,
                     Learned& learned);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_TRAIN_CO_RESIDENT_H_
