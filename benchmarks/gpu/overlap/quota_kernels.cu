// Every loop is bounded by a parameter or by the GPU's own clock.

#include <cuda_runtime.h>

#include <cstdint>
#include <gpushare/device/variants.cuh>

#include "benchmarks/gpu/overlap/quota_kernels.h"

namespace gpushare::benchmarks {

struct gpushare_quota_probe {
  using Params = QuotaProbeParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t begin_ns = device::GlobalTimerNs();
    while (device::GlobalTimerNs() - begin_ns < params.spin_ns) {
    }
    if (ctx.thread() != 0) return;
    uint32_t sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    atomicAdd(&params.executions[ctx.block_index()], 1U);
    atomicAdd(&params.by_sm[sm], 1U);
    // A body does not use blockIdx; this one asks which worker runs it, and is never fused.
    atomicAdd(&params.by_block[blockIdx.x], 1U);
  }
};
GPUSHARE_KERNEL(gpushare_quota_probe);

namespace {

__device__ void RunSkewed(const SkewedParams& params, uint32_t block_task) {
  const uint32_t iterations = params.iterations[block_task];
  uint32_t value = block_task * kSkewedThreads + threadIdx.x;  // SkewedStart
#pragma unroll 1
  for (uint32_t i = 0; i < iterations; ++i) {
    // Opaque to the compiler, which would otherwise take many iterations in one.
    asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(value) : "r"(kSkewedFactor), "r"(kSkewedStep));
  }
  params.results[size_t{block_task} * kSkewedThreads + threadIdx.x] = value;
  if (threadIdx.x == 0) atomicAdd(&params.executions[block_task], 1U);
}

__device__ void RunDynamic(const SkewedParams& params) {
  __shared__ uint32_t claims[2];
  for (uint32_t round = 0;; ++round) {
    if (threadIdx.x == 0) claims[round & 1] = atomicAdd(params.counter, 1U);
    __syncthreads();
    const uint32_t claimed = claims[round & 1];
    if (claimed >= params.block_tasks) return;
    RunSkewed(params, claimed);
  }
}

__global__ void __launch_bounds__(kSkewedThreads, kSkewedWorkersPerSm)
    SkewedWorkers(const __grid_constant__ SkewedParams params) {
  if (threadIdx.x == 0) params.begin_ns[blockIdx.x] = device::GlobalTimerNs();
  if (params.taking == Taking::kDynamic) {
    RunDynamic(params);
  } else {
    const bool range = params.taking == Taking::kRange;
    const uint32_t each = (params.block_tasks + gridDim.x - 1) / gridDim.x;
    const uint32_t step = range ? 1 : gridDim.x;
    uint32_t block_task = range ? blockIdx.x * each : blockIdx.x;
    for (uint32_t i = 0; i < each && block_task < params.block_tasks; ++i, block_task += step) {
      // Between two block tasks, as a worker that shares memory among its threads has it.
      __syncthreads();
      RunSkewed(params, block_task);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) params.end_ns[blockIdx.x] = device::GlobalTimerNs();
}

}  // namespace

int LaunchSkewed(const SkewedParams& params, uint32_t workers, CUstream_st* stream) {
  SkewedWorkers<<<workers, kSkewedThreads, 0, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace gpushare::benchmarks
