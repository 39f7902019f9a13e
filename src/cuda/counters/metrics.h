// The metrics of CUPTI that are counted, and what their values mean. Pure. Threads: any.
//
// tools/counters.py takes the same ones from ncu, so that both fill a profile alike.

#ifndef GPUSHARE_SRC_CUDA_COUNTERS_METRICS_H_
#define GPUSHARE_SRC_CUDA_COUNTERS_METRICS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/seams/launch_counts.h"

namespace gpushare::cuda {

// Names that A100, H100, H200 and B200 know, in the order of the values below. CUPTI needs 7 passes
// for them on an H200.
absl::Span<const char* const> CountedMetrics();

// Shares are over the time in which an SM was active: the gaps before and behind the launches do
// not count. FAILED_PRECONDITION: a value is negative or no number, or nothing was executed.
absl::StatusOr<core::LaunchCounts> CountsOf(absl::Span<const double> values);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_COUNTERS_METRICS_H_
