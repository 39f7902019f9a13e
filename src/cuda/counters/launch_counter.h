// Counts what launches do, with the GPU's counters, by CUPTI's range profiler.
//
//   GPUSHARE_ASSIGN_OR_RETURN(const cupti::Calls calls, cupti::Open());
//   absl::StatusOr<core::LaunchCounts> counts = CountLaunches(calls, context, ordinal, run);
//
// The context is profiled during the call only. Invariant: however the call ends, everything that
// it made at CUPTI is given back; only where another profiler of the process may be the reason of a
// refusal does CUPTI stay initialised. Threads: any, with the context current. CUPTI has one
// session a process: while one call counts, others are refused.

#ifndef GPUSHARE_SRC_CUDA_COUNTERS_LAUNCH_COUNTER_H_
#define GPUSHARE_SRC_CUDA_COUNTERS_LAUNCH_COUNTER_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/seams/launch_counts.h"
#include "src/cuda/counters/cupti.h"

namespace gpushare::cuda {

// A GPU counts a few metrics at a time, and needs a pass for each group. More than so many would be
// a defect: an H200 needs 7.
inline constexpr size_t kPassesMax = 64;

// `run` launches the work and waits for its end, once a pass. `context` is a CUcontext.
// Errors: those of `run`; PERMISSION_DENIED, UNAVAILABLE, FAILED_PRECONDITION as Device says, and
// FAILED_PRECONDITION while another call of the process counts.
absl::StatusOr<core::LaunchCounts> CountLaunches(const cupti::Calls& calls, void* context,
                                                 int ordinal,
                                                 absl::FunctionRef<absl::Status()> run);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_COUNTERS_LAUNCH_COUNTER_H_
