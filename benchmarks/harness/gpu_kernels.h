// Kernels that only wait and write the time. Plain types, so that .cc files need no nvcc. Every
// wait is bounded by the GPU's own clock. The launches enqueue and return a cudaError_t.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_GPU_KERNELS_H_
#define GPUSHARE_BENCHMARKS_HARNESS_GPU_KERNELS_H_

#include <cstdint>

struct CUstream_st;

namespace gpushare::benchmarks {

// One thread waits until *flag (mapped host memory) is `value`, writes %globaltimer to *out, and
// waits for delay_ns more. It gives up after kGateNsMax, so that a host that died leaves no kernel
// behind.
inline constexpr uint64_t kGateNsMax = 2'000'000'000;
int LaunchGate(const uint32_t* flag, uint32_t value, uint64_t delay_ns, uint64_t* out,
               CUstream_st* stream);

// One thread waits for wait_ns and writes %globaltimer to *out (mapped host memory). Who sees the
// time sees what came before in the stream.
int LaunchStamp(uint64_t wait_ns, uint64_t* out, CUstream_st* stream);

// Blocks that wait. Between two looks at the clock a warp sleeps, or takes issue slots (sleep_ns
// 0).
struct WaitParams {
  uint64_t wait_ns = 0;
  uint32_t sleep_ns = 0;
  uint32_t unused = 0;
};
int LaunchWait(const WaitParams& params, uint32_t blocks, uint32_t threads, CUstream_st* stream);
const void* WaitSymbol();

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_GPU_KERNELS_H_
