// See gpu_kernels.h. Every loop is bounded by a parameter or by the clock.

#include <cuda_runtime.h>

#include <cstdint>
#include <gpushare/device/completion.cuh>

#include "benchmarks/harness/gpu_kernels.h"

namespace gpushare::benchmarks {
namespace {

using device::GlobalTimerNs;

__device__ void Publish(uint64_t* out, uint64_t value) {
  __threadfence_system();
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(out), "l"(value) : "memory");
}

__global__ void Gate(const uint32_t* flag, uint32_t value, uint64_t delay_ns, uint64_t* out) {
  const uint64_t begin_ns = GlobalTimerNs();
  uint64_t now_ns = begin_ns;
  for (;;) {
    uint32_t seen;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    now_ns = GlobalTimerNs();
    if (seen == value || now_ns - begin_ns > kGateNsMax) break;
  }
  const uint64_t open_ns = now_ns;
  while (now_ns - open_ns < delay_ns) now_ns = GlobalTimerNs();
  Publish(out, open_ns);
}

__global__ void Stamp(uint64_t wait_ns, uint64_t* out) {
  const uint64_t begin_ns = GlobalTimerNs();
  uint64_t now_ns = begin_ns;
  while (now_ns - begin_ns < wait_ns) now_ns = GlobalTimerNs();
  Publish(out, now_ns);
}

__global__ void Wait(WaitParams params) {
  const uint64_t end_ns = GlobalTimerNs() + params.wait_ns;
  while (GlobalTimerNs() < end_ns) {
    if (params.sleep_ns > 0) __nanosleep(params.sleep_ns);
  }
}

}  // namespace

int LaunchGate(const uint32_t* flag, uint32_t value, uint64_t delay_ns, uint64_t* out,
               CUstream_st* stream) {
  Gate<<<1, 1, 0, stream>>>(flag, value, delay_ns, out);
  return cudaGetLastError();
}

int LaunchStamp(uint64_t wait_ns, uint64_t* out, CUstream_st* stream) {
  Stamp<<<1, 1, 0, stream>>>(wait_ns, out);
  return cudaGetLastError();
}

int LaunchWait(const WaitParams& params, uint32_t blocks, uint32_t threads, CUstream_st* stream) {
  Wait<<<blocks, threads, 0, stream>>>(params);
  return cudaGetLastError();
}

const void* WaitSymbol() { return reinterpret_cast<const void*>(&Wait); }

}  // namespace gpushare::benchmarks
