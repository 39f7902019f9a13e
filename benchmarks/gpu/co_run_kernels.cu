// See co_run_kernels.h.

#include <cuda_runtime.h>

#include <cstdint>

#include "benchmarks/gpu/co_run_kernels.h"

namespace gpushare::benchmarks {
namespace {

__device__ uint64_t NowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void Publish(uint64_t* out, uint64_t value) {
  __threadfence_system();
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(out), "l"(value) : "memory");
}

__global__ void Gate(const uint32_t* flag, uint32_t value, uint64_t delay_ns, uint64_t* out) {
  const uint64_t begin_ns = NowNs();
  uint64_t now_ns = begin_ns;
  for (;;) {
    uint32_t seen;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    now_ns = NowNs();
    if (seen == value || now_ns - begin_ns > kGateNsMax) break;
  }
  const uint64_t open_ns = now_ns;
  while (now_ns - open_ns < delay_ns) now_ns = NowNs();
  Publish(out, open_ns);
}

__global__ void TimeStamp(uint64_t* out) { Publish(out, NowNs()); }

}  // namespace

int LaunchGate(const uint32_t* flag, uint32_t value, uint64_t delay_ns, uint64_t* out,
               CUstream_st* stream) {
  Gate<<<1, 1, 0, stream>>>(flag, value, delay_ns, out);
  return cudaGetLastError();
}

int LaunchTimeStamp(uint64_t* out, CUstream_st* stream) {
  TimeStamp<<<1, 1, 0, stream>>>(out);
  return cudaGetLastError();
}

}  // namespace gpushare::benchmarks
