// Fits the process over pairs of kernels to measured pairs.
//
// Takes a second and tens of MB for thousands of samples: for tools, not for the scheduler. Pure.
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_CO_RESIDENT_FIT_H_
#define GPUSHARE_SRC_MODELS_CO_RESIDENT_FIT_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/models/co_resident/model.h"
#include "src/models/co_resident/process.h"

namespace gpushare::models::co_resident {

struct SampleSide {
  Kernel kernel;
  int32_t workers_per_sm = 0;
};

struct Sample {
  SampleSide timed;
  SampleSide neighbour;
  double speed = 0;  // of the timed kernel, relative to alone with workers_per_sm_max
};

// Samples with impossible numbers or without counters do not count, nor do those beyond the bounds
// of a State; of fewer than kSamplesMin nothing is known.
State FitPairs(absl::Span<const Sample> samples);
// The same weights without the error bars, for an eighth of the time.
State FitWeights(absl::Span<const Sample> samples);

inline constexpr size_t kSamplesMin = 24;

}  // namespace gpushare::models::co_resident

#endif  // GPUSHARE_SRC_MODELS_CO_RESIDENT_FIT_H_
