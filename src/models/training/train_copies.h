// The model of copies, from the rows of a samples file, repeat by repeat. Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_TRAIN_COPIES_H_
#define GPUSHARE_SRC_MODELS_TRAINING_TRAIN_COPIES_H_

#include "absl/functional/function_ref.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/learned/learned.h"
#include "src/models/online/copy_model.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

// Whether the row is a copy by itself: none runs the other way.
bool IsSingleCopy(const SampleRow& row);
core::TaskFeatures CopyFeaturesOf(const SampleRow& row);

// From the single copies that `trains` takes.
CopyModel TrainCopies(const Samples& samples, const core::DeviceProfile& device,
                      absl::FunctionRef<bool(const SampleRow& row)> trains);

// What a pinned copy takes of kernels, from the rows of kernels beside copies whose use of DRAM was
// counted. Without such rows of a direction its constant stays.
void FitCopySlowdowns(const Samples& samples, core::DeviceProfile& device);

// From all single copies. What was learned of kinds without rows stays.
void TrainCopies(const Samples& samples, const core::DeviceProfile& device, Learned& learned);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_TRAIN_COPIES_H_
