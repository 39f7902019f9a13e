// Trains a profile's kernels with the rows of a samples file: durations, counters and demands.
//
//   GPUSHARE_RETURN_IF_ERROR(TrainProfile(samples, TrainOptions(), profile));
//
// What a row says of a kernel takes the place of what was known: the line of its durations alone
// starts anew. Kernels without rows stay as they are, and so do evictions and pairs. The profile is
// changed completely or not at all. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_TRAIN_PROFILE_H_
#define GPUSHARE_SRC_MODELS_TRAINING_TRAIN_PROFILE_H_

#include "absl/status/status.h"
#include "src/models/profile/profile.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

struct TrainOptions {
  // Demands become those that were counted, also where the profile has some. Else counters fill
  // only what is 0: the demands on an SM's pipes, and those on DRAM and L2.
  bool replace_demands = false;
};

// Errors: FAILED_PRECONDITION the samples are of another GPU; INVALID_ARGUMENT the learned text
// cannot be read.
absl::Status TrainProfile(const Samples& samples, const TrainOptions& options, Profile& profile);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_TRAIN_PROFILE_H_
