// GPUSHARE_KERNEL(Body): compiles the variants of a kernel body, and defines a host function that
// describes them.
//
//   extern "C" __global__ Body_original(Params)                            the body's own grid
//   extern "C" __global__ Body_workers(gpushare_worker_launch, Params)     workers
//   extern "C" __global__ Body_slice(gpushare_worker_launch, Params)       a slice
//   extern "C" int Body_variants(gpushare_kernel_variants*)                0 or a cudaError_t
//
// Use it once for each body, in the namespace of the body, which must have a name. The functions
// have C linkage, so that a body's name must be unique in a program.

#ifndef GPUSHARE_DEVICE_VARIANTS_CUH_
#define GPUSHARE_DEVICE_VARIANTS_CUH_

#include <cuda_runtime.h>
#include <gpushare/device/kernel_variants.h>
#include <gpushare/device/launch.h>
#include <gpushare/device/shared_memory_split.h>

#include <cstddef>
#include <cstdint>
#include <gpushare/device/body.cuh>
#include <gpushare/device/leader.cuh>
#include <gpushare/device/worker.cuh>

static_assert(sizeof(gpushare_worker_launch) == 128,
              "the launch header is 128 bytes: precompiled kernels carry its layout");
static_assert(sizeof(gpushare_worker_completion) == 32 && sizeof(gpushare_worker_scratch) == 32,
              "precompiled kernels carry these layouts");

namespace gpushare::device {

extern __shared__ __align__(1024) unsigned char dynamic_shared[];

// The body's Shared: in static shared memory, or, if it is large, all of the dynamic one.
template <class Body>
__device__ typename Body::Shared& SharedOf() {
  using Shared = typename Body::Shared;
  if constexpr (kDynamicShared<Body>) {
    return *reinterpret_cast<Shared*>(dynamic_shared);
  } else {
    __shared__ alignas(alignof(Shared)) unsigned char bytes[sizeof(Shared)];
    return *reinterpret_cast<Shared*>(bytes);
  }
}

template <class Body>
__device__ void RunOriginalKernel(const typename Body::Params& params) {
  RunOriginal<Body, WholeBlock<Body::kThreads, kBodyExtraBarriers<Body>>>(params, SharedOf<Body>());
}

template <class Body>
__device__ void RunWorkerKernel(const gpushare_worker_launch& launch,
                                const typename Body::Params& params) {
  __shared__ WorkerShared mine;
  const uint32_t leaders = launch.host_eviction_word == nullptr ? 0 : 1;
  if (blockIdx.x < leaders) {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) RelayEvictions(launch);
    return;
  }
  RunWorker<Body, WholeBlock<Body::kThreads, kBodyExtraBarriers<Body>>>(
      launch, params, SharedOf<Body>(), mine, blockIdx.x - leaders, gridDim.x - leaders);
}

// Slices have a kernel of their own: in one kernel with the worker loop, each of the two changes
// the registers and the schedule that the assembler gives the other (up to 3 % of a kernel's time).
template <class Body>
__device__ void RunSliceKernel(const gpushare_worker_launch& launch,
                               const typename Body::Params& params) {
  RunSlice<Body, WholeBlock<Body::kThreads, kBodyExtraBarriers<Body>>>(
      launch, params, SharedOf<Body>(), blockIdx.x, gridDim.x);
}

namespace internal {

// The description of one variant.
struct DescribedVariant {
  cudaFunction_t function = nullptr;
  cudaFuncAttributes attributes = {};
  int blocks_per_sm = 0;
};

// Prepares a variant for its first launch and counts how many of its blocks fit in an SM.
inline cudaError_t PrepareVariant(const void* symbol, int threads, uint32_t dynamic_shared_bytes,
                                  cudaFuncAttributes* attributes, int* blocks_per_sm) {
  cudaError_t code = cudaSuccess;
  if (dynamic_shared_bytes > 0) {
    code = cudaFuncSetAttribute(symbol, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(dynamic_shared_bytes));
    if (code != cudaSuccess) return code;
  }
  code = cudaFuncGetAttributes(attributes, symbol);
  if (code != cudaSuccess) return code;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks_per_sm, symbol, threads,
                                                       dynamic_shared_bytes);
}

template <class Body>
cudaError_t DescribeVariant(const void* symbol, DescribedVariant* variant) {
  const cudaError_t code = PrepareVariant(symbol, Body::kThreads, DynamicSharedBytes<Body>(),
                                          &variant->attributes, &variant->blocks_per_sm);
  if (code != cudaSuccess) return code;
  return cudaGetFuncBySymbol(&variant->function, symbol);
}

// Gives the workers just the shared memory that they need, rounded up to one per cent; the rest is
// L1. One step more of shared memory costs the workers of spmv 1.3 %, of bfs 2 % and of stencil,
// from 32 KB on, 3.9 %.
inline cudaError_t KeepL1(const void* worker_symbol, const void* slice_symbol, int workers,
                          size_t worker_bytes) {
  int device = 0;
  int sm_bytes = 0;
  int reserved_bytes = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&sm_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&reserved_bytes, cudaDevAttrReservedSharedMemoryPerBlock, device);
  }
  if (code != cudaSuccess) return code;
  const int percent = SharedMemorySplitPercent(
      workers, worker_bytes, static_cast<size_t>(reserved_bytes), static_cast<size_t>(sm_bytes));
  code =
      cudaFuncSetAttribute(worker_symbol, cudaFuncAttributePreferredSharedMemoryCarveout, percent);
  if (code != cudaSuccess) return code;
  return cudaFuncSetAttribute(slice_symbol, cudaFuncAttributePreferredSharedMemoryCarveout,
                              percent);
}

}  // namespace internal

// Loads the variants into the current device. Threads: any. Returns a cudaError_t; `out` is
// complete only if that is 0.
template <class Body>
int DescribeVariants(const void* original_symbol, const void* worker_symbol,
                     const void* slice_symbol, gpushare_kernel_variants* out) {
  static_assert(CheckBody<Body>(), "the body keeps the kernel contract");
  *out = {};
  // An SM changes its split between L1 and shared memory only when it is empty, and LC kernels of
  // libraries need the largest shared memory. So workers ask for the largest too. A body that loses
  // more by a small L1 (kKeepsL1) changes the split at the end, because the number of workers that
  // fit is counted with the largest. Slices use the workers' split: with another one, slices and
  // workers of different tasks would wait for each other.
  for (const void* const symbol : {worker_symbol, slice_symbol}) {
    const cudaError_t code = cudaFuncSetAttribute(
        symbol, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    if (code != cudaSuccess) return code;
  }
  internal::DescribedVariant original;
  internal::DescribedVariant worker;
  internal::DescribedVariant slice;
  cudaError_t code = internal::DescribeVariant<Body>(original_symbol, &original);
  if (code == cudaSuccess) code = internal::DescribeVariant<Body>(worker_symbol, &worker);
  if (code == cudaSuccess) code = internal::DescribeVariant<Body>(slice_symbol, &slice);
  if (code != cudaSuccess) return code;
  out->original_function = original.function;
  out->worker_function = worker.function;
  out->slice_function = slice.function;
  out->original_symbol = original_symbol;
  out->worker_symbol = worker_symbol;
  out->slice_symbol = slice_symbol;
  out->threads_per_block = Body::kThreads;
  out->params_bytes = static_cast<uint32_t>(sizeof(typename Body::Params));
  out->original_registers = static_cast<uint32_t>(original.attributes.numRegs);
  out->worker_registers = static_cast<uint32_t>(worker.attributes.numRegs);
  out->slice_registers = static_cast<uint32_t>(slice.attributes.numRegs);
  out->static_shared_bytes = static_cast<uint32_t>(worker.attributes.sharedSizeBytes);
  out->dynamic_shared_bytes = DynamicSharedBytes<Body>();
  out->local_bytes = static_cast<uint32_t>(worker.attributes.localSizeBytes);
  out->original_blocks_per_sm = static_cast<uint32_t>(original.blocks_per_sm);
  const bool fewer = kBodyWorkersPerSm<Body> > 0 && kBodyWorkersPerSm<Body> < worker.blocks_per_sm;
  out->workers_per_sm =
      static_cast<uint32_t>(fewer ? kBodyWorkersPerSm<Body> : worker.blocks_per_sm);
  out->yields = kBodyYields<Body> ? 1 : 0;
  if constexpr (kBodyKeepsL1<Body>) {
    code = internal::KeepL1(worker_symbol, slice_symbol, static_cast<int>(out->workers_per_sm),
                            out->static_shared_bytes + out->dynamic_shared_bytes);
    if (code != cudaSuccess) *out = {};
    return code;
  }
  return 0;
}

}  // namespace gpushare::device

#define GPUSHARE_KERNEL(Body)                                                                      \
  extern "C" __global__ void __launch_bounds__(Body::kThreads, gpushare::device::kMinBlocks<Body>) \
      Body##_original(const __grid_constant__ Body::Params params) {                               \
    gpushare::device::RunOriginalKernel<Body>(params);                                             \
  }                                                                                                \
  extern "C" __global__ void __launch_bounds__(Body::kThreads, gpushare::device::kMinBlocks<Body>) \
      Body##_workers(const __grid_constant__ gpushare_worker_launch launch,                        \
                     const __grid_constant__ Body::Params params) {                                \
    gpushare::device::RunWorkerKernel<Body>(launch, params);                                       \
  }                                                                                                \
  extern "C" __global__ void __launch_bounds__(Body::kThreads, gpushare::device::kMinBlocks<Body>) \
      Body##_slice(const __grid_constant__ gpushare_worker_launch launch,                          \
                   const __grid_constant__ Body::Params params) {                                  \
    gpushare::device::RunSliceKernel<Body>(launch, params);                                        \
  }                                                                                                \
  extern "C" int Body##_variants(gpushare_kernel_variants* out) {                                  \
    return gpushare::device::DescribeVariants<Body>(                                               \
        reinterpret_cast<const void*>(&Body##_original),                                           \
        reinterpret_cast<const void*>(&Body##_workers),                                            \
        reinterpret_cast<const void*>(&Body##_slice), out);                                        \
  }                                                                                                \
  static_assert(true, "GPUSHARE_KERNEL ends with a semicolon")

#endif  // GPUSHARE_DEVICE_VARIANTS_CUH_
