// The one-thread kernels between which co-runs are timed. Plain types, so that .cc files need no
// nvcc.

#ifndef GPUSHARE_BENCHMARKS_GPU_CO_RUN_KERNELS_H_
#define GPUSHARE_BENCHMARKS_GPU_CO_RUN_KERNELS_H_

#include <cstdint>

struct CUstream_st;

namespace gpushare::benchmarks {

// Waits until *flag (mapped host memory) is `value`, then delay_ns more, and writes %globaltimer to
// *out. Gives up after kGateNsMax, so that a host that died leaves no kernel behind.
inline constexpr uint64_t kGateNsMax = 2'000'000'000;
int LaunchGate(const uint32_t* flag, uint32_t value, uint64_t delay_ns, uint64_t* out,
               CUstream_st* stream);
// Writes %globaltimer to *out (mapped host memory).
int LaunchTimeStamp(uint64_t* out, CUstream_st* stream);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_CO_RUN_KERNELS_H_
