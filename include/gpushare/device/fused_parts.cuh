// How a fused kernel runs. Each thread finds its part and its copy of the part, moves registers if
// the form does, and runs the worker loop (in the direct form: one block task). The template
// parameter Layout is an instance of Fused.
//
// Invariants: parts share no barrier, no shared memory and no word of memory. Each warpgroup moves
// its registers exactly once, at the start. When one part ends, the other goes on undisturbed.

#ifndef GPUSHARE_DEVICE_FUSED_PARTS_CUH_
#define GPUSHARE_DEVICE_FUSED_PARTS_CUH_

#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/barrier.cuh>
#include <gpushare/device/block_task.cuh>
#include <gpushare/device/fused_layout.cuh>
#include <gpushare/device/leader.cuh>
#include <gpushare/device/variants.cuh>
#include <gpushare/device/worker.cuh>

namespace gpushare::device {

namespace internal {

template <int kRegisters>
__device__ __forceinline__ void TakeRegisters() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

template <int kRegisters>
__device__ __forceinline__ void GiveRegisters() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

template <class Layout>
__device__ __forceinline__ unsigned char* FusedShared() {
  if constexpr (Layout::kDynamic) {
    return dynamic_shared;
  } else {
    __shared__ alignas(Layout::kSharedAlign) unsigned char bytes[Layout::kSharedBytes];
    return bytes;
  }
}

// Runs the copy of the part that this thread belongs to.
template <int kForm, class Body, class Part>
__device__ __forceinline__ void RunPart(const gpushare_worker_launch& launch,
                                        const typename Body::Params& params, unsigned char* shared,
                                        uint32_t shared_stride, unsigned char* worker_shared,
                                        uint32_t block, uint32_t blocks) {
  if (Part::Thread() >= Body::kThreads) return;  // padding
  const uint32_t copy = Part::Copy();
  auto& body_shared = *reinterpret_cast<typename Body::Shared*>(shared + copy * shared_stride);
  const uint32_t worker = block * Part::kCopies + copy;
  if constexpr (kForm == GPUSHARE_FUSED_DIRECT) {
    if (worker >= launch.block_count) return;
    SliceContext<Part> ctx(launch, launch.block_begin + worker);
    RunOnce<Body, Part>(params, body_shared, ctx);
  } else {
    auto& mine = reinterpret_cast<WorkerShared*>(worker_shared)[copy];
    RunWorker<Body, Part>(launch, params, body_shared, mine, worker, blocks * Part::kCopies);
  }
}

template <class Layout>
__device__ __forceinline__ void RunTensorPart(const gpushare_worker_launch& launch,
                                              const typename Layout::Tensor::Params& params,
                                              unsigned char* shared, uint32_t block,
                                              uint32_t blocks) {
  using Body = typename Layout::Tensor;
  using Threads = Part<0, Body::kThreads, Layout::kTensorBarrier, Layout::kTensorExtra,
                       kBodyExtraBarriers<Body>, Layout::kTensorBlocks, Layout::kTensorStride>;
  if constexpr (Layout::kMovesRegisters) TakeRegisters<Layout::kTensorRegisters>();
  RunPart<Layout::kForm, Body, Threads>(launch, params, shared, Layout::kTensorSharedStride,
                                        shared + Layout::kWorkerShared, block, blocks);
}

template <class Layout>
__device__ __forceinline__ void RunCudaPart(const gpushare_worker_launch& launch,
                                            const typename Layout::Cuda::Params& params,
                                            unsigned char* shared, uint32_t block,
                                            uint32_t blocks) {
  using Body = typename Layout::Cuda;
  using Threads =
      Part<Layout::kTensorThreads, Body::kThreads, Layout::kCudaBarrier, Layout::kCudaExtra,
           kBodyExtraBarriers<Body>, Layout::kCudaBlocks, Layout::kCudaStride>;
  if constexpr (Layout::kMovesRegisters) GiveRegisters<Layout::kCudaRegisters>();
  RunPart<Layout::kForm, Body, Threads>(
      launch, params, shared + Layout::kCudaShared, Layout::kCudaSharedStride,
      shared + Layout::kWorkerShared + Layout::kTensorBlocks * sizeof(WorkerShared), block, blocks);
}

}  // namespace internal

// The type of a part's launch header in the kernel's parameters.
template <int kForm>
struct FusedHeader {
  using Type = gpushare_worker_launch;
};
template <>
struct FusedHeader<GPUSHARE_FUSED_DIRECT> {
  using Type = gpushare_direct_launch;
};
__device__ __forceinline__ const gpushare_worker_launch& WholeHeader(
    const gpushare_worker_launch& header) {
  return header;
}
// The direct form never reads the word that its header lacks.
__device__ __forceinline__ const gpushare_worker_launch& WholeHeader(
    const gpushare_direct_launch& header) {
  return reinterpret_cast<const gpushare_worker_launch&>(header);
}

template <class Layout>
__device__ __forceinline__ void RunFusedKernel(const gpushare_worker_launch& tensor,
                                               const typename Layout::Tensor::Params& tensor_params,
                                               const gpushare_worker_launch& cuda,
                                               const typename Layout::Cuda::Params& cuda_params) {
  if constexpr (!Layout::kFeasible || (Layout::kOnlySm90a && !internal::kIsSm90a)) {
    __trap();  // not reached: Name_variants reports blocks_per_sm 0 on such a device
  } else {
    uint32_t leaders = 0;
    if constexpr (Layout::kForm != GPUSHARE_FUSED_DIRECT) {
      leaders = tensor.host_eviction_word == nullptr && cuda.host_eviction_word == nullptr ? 0 : 1;
      if (blockIdx.x < leaders) {
        const bool leads_tensor = threadIdx.x == 0 && tensor.host_eviction_word != nullptr;
        const bool leads_cuda =
            threadIdx.x == Layout::kTensorThreads && cuda.host_eviction_word != nullptr;
        // One loop serves both leaders, which are in different warps.
        if (leads_tensor || leads_cuda) RelayEvictions(leads_tensor ? tensor : cuda);
        return;
      }
    }
    unsigned char* const shared = internal::FusedShared<Layout>();
    const uint32_t block = blockIdx.x - leaders;
    const uint32_t blocks = gridDim.x - leaders;
    if (threadIdx.x < Layout::kTensorThreads) {
      internal::RunTensorPart<Layout>(tensor, tensor_params, shared, block, blocks);
    } else {
      internal::RunCudaPart<Layout>(cuda, cuda_params, shared, block, blocks);
    }
  }
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_FUSED_PARTS_CUH_
