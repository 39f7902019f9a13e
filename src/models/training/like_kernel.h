// Fills the record of a kernel that nobody calibrated from one that is like it.
//
//   LikeRequest request;
//   request.kernel = "mine";
//   request.counters = CountersOf(samples, "mine");
//   absl::StatusOr<std::string> like = FillLike(request, profile);
//
// Copied: the simulation record (speed over SMs, demands, memory_parallelism) and the measured
// pairs, as LC and as neighbour; of a kernel that the profile does not have, its description too.
// Where both kernels have counters, the block task and the demands are scaled by them. Solo
// durations and evictions are not copied: their priors follow from the block task. The profile is
// changed completely or not at all. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_LIKE_KERNEL_H_
#define GPUSHARE_SRC_MODELS_TRAINING_LIKE_KERNEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/models/profile/profile.h"

namespace gpushare::models {

struct LikeRequest {
  std::string kernel;             // to fill; the profile may have it without a simulation record
  std::string like;               // empty: the kernel whose counters are nearest
  core::KernelCounters counters;  // of `kernel`; not present: those in the profile, if it has any
};

// The distance of two kernels by the shares of peak that they use: Euclid.
double DistanceOf(const core::KernelCounters& a, const core::KernelCounters& b);

// Returns the name of the kernel that the record comes from. Errors: NOT_FOUND the profile has no
// kernel `like`; FAILED_PRECONDITION `kernel` has a record, `like` has none, or there are no
// counters to find the nearest by; RESOURCE_EXHAUSTED the profile is full; INVALID_ARGUMENT the
// learned text cannot be read.
absl::StatusOr<std::string> FillLike(const LikeRequest& request, Profile& profile);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_LIKE_KERNEL_H_
