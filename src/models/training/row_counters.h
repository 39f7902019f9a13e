// The counters of a kernel, from a row of samples (docs/samples.md, "Counters"). Pure. Threads:
// any.

#ifndef GPUSHARE_SRC_MODELS_TRAINING_ROW_COUNTERS_H_
#define GPUSHARE_SRC_MODELS_TRAINING_ROW_COUNTERS_H_

#include <string>

#include "src/core/seams/kernel.h"
#include "src/models/samples/samples_file.h"

namespace gpushare::models {

// Of one block task where they are numbers, as counted where they are shares. Not present unless
// the row has instructions, block tasks and the share of issue.
core::KernelCounters CountersOf(const SampleRow& row);

// From the kernel's last row; not present without one.
core::KernelCounters CountersOf(const Samples& samples, const std::string& kernel);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_TRAINING_ROW_COUNTERS_H_
