// GPUSHARE_FUSED_KERNEL(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form): one kernel
// whose blocks hold TensorBlocks blocks of a Tensor-core kernel and CudaBlocks of a CUDA-core
// kernel, each with its own worker loop (Tacker, section V, with SMGuard's eviction and quota for
// either part).
//
//   extern "C" __global__ Name_fused(gpushare_worker_launch tensor, TensorBody::Params,
//                                    gpushare_worker_launch cuda, CudaBody::Params)
//   extern "C" int Name_variants(gpushare_fused_variants*)        0 or a cudaError_t
//
// A part is what the block holds of one kernel. It has its own header, so its own claim counter,
// eviction word, scratch and completion record: either one may be evicted, confined to a quota or
// end while the other runs on, and any launch with its counter goes on with its block tasks.
//
// Invariants
// - Tensor threads come first. Worker i of part p in fused block k has index k * Blocks(p) + i, and
//   the part's launch has fused blocks * Blocks(p) workers, all of which report their end.
// - The parts share no barrier, no shared memory and no word. Barrier 0 is not used: a part that
// has
//   ended leaves threads that meet nobody.
// - With setmaxnreg parts are whole warpgroups, every one of which moves its registers exactly
// once,
//   at the start; what some take is at most what the others give (Registers below), else the
//   kernel would wait for ever.
//
// Use it as GPUSHARE_KERNEL: once a name, in the namespace of the bodies.

#ifndef GPUSHARE_DEVICE_FUSED_CUH_
#define GPUSHARE_DEVICE_FUSED_CUH_

#include <cuda_runtime.h>
#include <gpushare/device/fused_variants.h>
#include <gpushare/device/launch.h>

#include <cstddef>
#include <cstdint>
#include <gpushare/device/barrier.cuh>
#include <gpushare/device/block_task.cuh>
#include <gpushare/device/body.cuh>
#include <gpushare/device/leader.cuh>
#include <gpushare/device/variants.cuh>
#include <gpushare/device/worker.cuh>

namespace gpushare::device {

// What a fused kernel has to know of a body beside what the body itself says. Specialise it where
// the body is, or derive from it to change some.
template <class Body>
struct FusedTraits {
  // wgmma or setmaxnreg inside: there is no code but sm_90a's.
  static constexpr bool kOnlySm90a = false;
  // With fewer registers a thread spills; 0: unknown.
  static constexpr int kRegistersMin = 0;
  // The same at launch, before setmaxnreg adds any: ptxas keeps the sums of wgmma within these (it
  // refuses n = 128 below 90 and n = 256 below 154, and serialises what does not fit).
  static constexpr int kLaunchRegistersMin = 0;
};

namespace internal {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kBlockThreadsMax = 1024;
inline constexpr int kSmRegisters = 65536;
inline constexpr int kBlockSharedBytesMax = 227 * 1024;  // of the GPUs that have most
inline constexpr int kBlockBarriers = 16;
inline constexpr int kRegistersMax = 255;     // of a thread
inline constexpr int kRegisterStep = 8;       // setmaxnreg's, and that of a warp's allocation
inline constexpr int kCudaRegistersMin = 48;  // a body of 32, and the addresses of two headers
inline constexpr int kTensorRegistersMax = 240;

constexpr int RoundUp(size_t value, int step) {
  return (static_cast<int>(value) + step - 1) / step * step;
}
constexpr int RoundDown(int value, int step) { return value / step * step; }
constexpr int Larger(int a, int b) { return a > b ? a : b; }

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool kIsSm90a = true;
#else
inline constexpr bool kIsSm90a = false;
#endif

// Registers that launch bounds leave a thread.
constexpr int RegistersAt(int threads, int blocks_per_sm) {
  const int left = RoundDown(kSmRegisters / (threads * blocks_per_sm), kRegisterStep);
  return left < kRegistersMax ? left : kRegistersMax;
}

}  // namespace internal

// What is known of a fused block when it is compiled.
template <class TensorBody, int kTensorCopies, class CudaBody, int kCudaCopies, int kFormOf,
          int kMinFusedBlocks = 1>
struct Fused {
  using Tensor = TensorBody;
  using Cuda = CudaBody;
  static constexpr int kTensorBlocks = kTensorCopies;
  static constexpr int kCudaBlocks = kCudaCopies;
  static constexpr int kForm = kFormOf;
  static constexpr int kMinBlocksPerSm = kMinFusedBlocks;
  static constexpr bool kMovesRegisters = kForm == GPUSHARE_FUSED_SETMAXNREG;

  static_assert(kTensorCopies >= 1 && kCudaCopies >= 1, "a fused block holds both kernels");
  static_assert(kForm >= GPUSHARE_FUSED_PLAIN && kForm <= GPUSHARE_FUSED_DIRECT,
                "a form is one of GPUSHARE_FUSED_PLAIN, _SETMAXNREG and _DIRECT");
  static_assert(CheckBody<TensorBody>() && CheckBody<CudaBody>(),
                "bodies keep the kernel contract");
  static_assert(TensorBody::kThreads % 32 == 0 && CudaBody::kThreads % 32 == 0,
                "a part of a fused block is made of whole warps");

  // Threads. wgmma wants each of its blocks to start with a whole warpgroup.
  static constexpr int kWarpgroup = internal::kWarpgroupThreads;
  static constexpr int kTensorStride = internal::RoundUp(
      TensorBody::kThreads,
      kMovesRegisters || (FusedTraits<TensorBody>::kOnlySm90a && kTensorBlocks > 1) ? kWarpgroup
                                                                                    : 32);
  static constexpr int kCudaStride =
      internal::RoundUp(CudaBody::kThreads, kMovesRegisters ? kWarpgroup : 32);
  static constexpr int kTensorThreads = kTensorBlocks * kTensorStride;
  static constexpr int kCudaThreads = kCudaBlocks * kCudaStride;
  static constexpr int kThreads = kTensorThreads + kCudaThreads;

  // Barriers: 0 unused, one a copy, then the extra ones.
  static constexpr int kTensorBarrier = 1;
  static constexpr int kCudaBarrier = kTensorBarrier + kTensorBlocks;
  static constexpr int kTensorExtra = kCudaBarrier + kCudaBlocks;
  static constexpr int kCudaExtra = kTensorExtra + kTensorBlocks * kBodyExtraBarriers<TensorBody>;
  static constexpr int kBarriers = kCudaExtra + kCudaBlocks * kBodyExtraBarriers<CudaBody>;

  // Shared memory, as offsets: the bodies' Shared, then what their worker loops share.
  static constexpr int kWorkers = kTensorBlocks + kCudaBlocks;
  // Static, each starts at its own alignment, or at 128 bytes. Dynamic, so do small CUDA-core
  // bodies; the others start as they do alone.
  static constexpr int kTensorAlignMin = internal::Larger(128, alignof(typename Tensor::Shared));
  static constexpr int kCudaAlignMin = internal::Larger(128, alignof(typename Cuda::Shared));
  static constexpr int kSharedSum =
      kTensorBlocks * internal::RoundUp(sizeof(typename Tensor::Shared), kTensorAlignMin) +
      kCudaBlocks * internal::RoundUp(sizeof(typename Cuda::Shared), kCudaAlignMin) +
      kWorkers * static_cast<int>(sizeof(WorkerShared));
  static constexpr bool kDynamic = kSharedSum > kStaticSharedBytesMax;
  static constexpr int kTensorAlign = kDynamic ? kSharedAlignment : kTensorAlignMin;
  static constexpr int kCudaAlign = kDynamicShared<CudaBody> ? kSharedAlignment : kCudaAlignMin;
  static constexpr int kSharedAlign = internal::Larger(kTensorAlign, kCudaAlign);
  static constexpr int kTensorSharedStride =
      internal::RoundUp(sizeof(typename Tensor::Shared), kTensorAlign);
  static constexpr int kCudaSharedStride =
      internal::RoundUp(sizeof(typename Cuda::Shared), kCudaAlign);
  static constexpr int kCudaShared =
      internal::RoundUp(kTensorBlocks * kTensorSharedStride, kCudaAlign);
  static constexpr int kWorkerShared =
      internal::RoundUp(kCudaShared + kCudaBlocks * kCudaSharedStride, alignof(WorkerShared));
  static constexpr int kSharedBytes =
      kWorkerShared + kWorkers * static_cast<int>(sizeof(WorkerShared));

  // Registers of a thread: at launch, and what each part's warpgroups then have.
  static constexpr bool kFits =
      kThreads <= internal::kBlockThreadsMax && kBarriers <= internal::kBlockBarriers &&
      kSharedBytes <= internal::kBlockSharedBytesMax && kMinBlocksPerSm * kThreads <= 2048;
  static constexpr int kRegisters =
      kFits ? internal::RegistersAt(kThreads, kMinBlocksPerSm) : internal::kRegisterStep;
  // The CUDA-core body keeps what its own launch bounds leave it.
  static constexpr int kCudaRegisters = internal::Larger(
      internal::kCudaRegistersMin, internal::RegistersAt(CudaBody::kThreads, kMinBlocks<CudaBody>));
  static constexpr int kTensorLeft =
      internal::RoundDown((kRegisters * kThreads - kCudaRegisters * kCudaThreads) / kTensorThreads,
                          internal::kRegisterStep);
  static constexpr int kTensorRegisters =
      kTensorLeft < internal::kTensorRegistersMax ? kTensorLeft : internal::kTensorRegistersMax;
  static constexpr bool kRegistersAddUp =
      !kMovesRegisters || (kRegisters % internal::kRegisterStep == 0 &&
                           kCudaRegisters < kRegisters && kRegisters < kTensorRegisters);
  static constexpr bool kRegistersAreEnough =
      kRegisters >= FusedTraits<TensorBody>::kLaunchRegistersMin &&
      (kMovesRegisters ? kTensorRegisters : kRegisters) >= FusedTraits<TensorBody>::kRegistersMin &&
      (kMovesRegisters ? kCudaRegisters : kRegisters) >= FusedTraits<CudaBody>::kRegistersMin;

  // Whether some GPU can run it; a variant that none can is compiled to nothing.
  static constexpr bool kFeasible = kFits && kRegistersAddUp && kRegistersAreEnough;
  static constexpr bool kOnlySm90a =
      kMovesRegisters || FusedTraits<TensorBody>::kOnlySm90a || FusedTraits<CudaBody>::kOnlySm90a;
  static constexpr int kLaunchThreads = kFeasible ? kThreads : 32;
  static constexpr int kLaunchBlocks = kFeasible ? kMinBlocksPerSm : 1;

  static constexpr uint32_t StaticBytes() { return kDynamic ? 0 : kSharedBytes; }
  static constexpr uint32_t DynamicBytes() { return kDynamic ? kSharedBytes : 0; }
};

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

// The copy of a part that this thread belongs to.
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
    WorkerContext<Part> ctx(launch, worker);
    ctx.set_block_task(launch.block_begin + worker);
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

template <class Layout>
__device__ __forceinline__ void RunFusedKernel(const gpushare_worker_launch& tensor,
                                               const typename Layout::Tensor::Params& tensor_params,
                                               const gpushare_worker_launch& cuda,
                                               const typename Layout::Cuda::Params& cuda_params) {
  if constexpr (!Layout::kFeasible || (Layout::kOnlySm90a && !internal::kIsSm90a)) {
    __trap();  // Name_variants says that this device cannot run it
  } else {
    uint32_t leaders = 0;
    if constexpr (Layout::kForm != GPUSHARE_FUSED_DIRECT) {
      leaders = tensor.host_eviction_word == nullptr && cuda.host_eviction_word == nullptr ? 0 : 1;
      if (blockIdx.x < leaders) {
        const bool leads_tensor = threadIdx.x == 0 && tensor.host_eviction_word != nullptr;
        const bool leads_cuda =
            threadIdx.x == Layout::kTensorThreads && cuda.host_eviction_word != nullptr;
        // One loop for both, which are in different warps.
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

namespace internal {

// Whether the current device can run the variant at all; cudaSuccess or an error of asking.
template <class Layout>
cudaError_t DeviceRuns(bool* runs) {
  *runs = false;
  if (!Layout::kFeasible) return cudaSuccess;
  int device = 0;
  int major = 0;
  int minor = 0;
  int shared_max = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code != cudaSuccess) return code;
  code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (code != cudaSuccess) return code;
  code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (code != cudaSuccess) return code;
  code = cudaDeviceGetAttribute(&shared_max, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (code != cudaSuccess) return code;
  const bool is_sm_90 = major == 9 && minor == 0;
  *runs = (is_sm_90 || !Layout::kOnlySm90a) && Layout::kSharedBytes <= shared_max;
  return cudaSuccess;
}

template <class Layout>
void DescribeLayout(gpushare_fused_variants* out) {
  *out = {};
  out->threads_per_block = Layout::kThreads;
  out->tensor_blocks = Layout::kTensorBlocks;
  out->cuda_blocks = Layout::kCudaBlocks;
  out->tensor_params_bytes = static_cast<uint32_t>(sizeof(typename Layout::Tensor::Params));
  out->cuda_params_bytes = static_cast<uint32_t>(sizeof(typename Layout::Cuda::Params));
  out->static_shared_bytes = Layout::StaticBytes();
  out->dynamic_shared_bytes = Layout::DynamicBytes();
  out->form = Layout::kForm;
}

}  // namespace internal

// Loads the kernel into the current device. Threads: any. A cudaError_t; with 0 and blocks_per_sm 0
// there is no such kernel for this device, and only what the layout says is filled in.
template <class Layout>
int DescribeFused(const void* symbol, gpushare_fused_variants* out) {
  internal::DescribeLayout<Layout>(out);
  bool runs = false;
  cudaError_t code = internal::DeviceRuns<Layout>(&runs);
  if (code != cudaSuccess || !runs) return code;
  cudaFuncAttributes attributes = {};
  int blocks_per_sm = 0;
  code = internal::PrepareVariant(symbol, Layout::kThreads, Layout::DynamicBytes(), &attributes,
                                  &blocks_per_sm);
  if (code != cudaSuccess) return code;
  const int registers = attributes.numRegs;
  // Parts that take more than others give wait for ever. So the kernel must have been launched with
  // exactly the registers that the sums are made for; code for plain sm_90 has others too.
  if (Layout::kMovesRegisters && registers != Layout::kRegisters) return cudaSuccess;
  // As DescribeVariants: an SM changes its split only when it is empty.
  code = cudaFuncSetAttribute(symbol, cudaFuncAttributePreferredSharedMemoryCarveout,
                              cudaSharedmemCarveoutMaxShared);
  if (code != cudaSuccess) return code;
  cudaFunction_t function = nullptr;
  code = cudaGetFuncBySymbol(&function, symbol);
  if (code != cudaSuccess) return code;
  out->function = function;
  out->symbol = symbol;
  out->registers = static_cast<uint32_t>(registers);
  out->tensor_registers =
      static_cast<uint32_t>(Layout::kMovesRegisters ? Layout::kTensorRegisters : registers);
  out->cuda_registers =
      static_cast<uint32_t>(Layout::kMovesRegisters ? Layout::kCudaRegisters : registers);
  out->static_shared_bytes = static_cast<uint32_t>(attributes.sharedSizeBytes);
  out->local_bytes = static_cast<uint32_t>(attributes.localSizeBytes);
  out->blocks_per_sm = static_cast<uint32_t>(blocks_per_sm);
  return 0;
}

}  // namespace gpushare::device

#define GPUSHARE_FUSED_KERNEL(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form) \
  GPUSHARE_FUSED_KERNEL_MIN(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form, 1)

// With at least MinBlocks fused blocks an SM, for which the compiler bounds the registers.
#define GPUSHARE_FUSED_KERNEL_MIN(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form,   \
                                  MinBlocks)                                                    \
  using Name##_layout =                                                                         \
      gpushare::device::Fused<TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form, MinBlocks>; \
  extern "C" __global__ void __launch_bounds__(Name##_layout::kLaunchThreads,                   \
                                               Name##_layout::kLaunchBlocks)                    \
      Name##_fused(const __grid_constant__ gpushare_worker_launch tensor,                       \
                   const __grid_constant__ TensorBody::Params tensor_params,                    \
                   const __grid_constant__ gpushare_worker_launch cuda,                         \
                   const __grid_constant__ CudaBody::Params cuda_params) {                      \
    gpushare::device::RunFusedKernel<Name##_layout>(tensor, tensor_params, cuda, cuda_params);  \
  }                                                                                             \
  extern "C" int Name##_variants(gpushare_fused_variants* out) {                                \
    return gpushare::device::DescribeFused<Name##_layout>(                                      \
        reinterpret_cast<const void*>(&Name##_fused), out);                                     \
  }                                                                                             \
  static_assert(true, "GPUSHARE_FUSED_KERNEL ends with a semicolon")

#endif  // GPUSHARE_DEVICE_FUSED_CUH_
