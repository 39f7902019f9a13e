// The layout of a fused block at compile time: threads, barriers, shared memory and registers of
// its parts, and whether some GPU can run it. Constants only.
//
// Threads of the Tensor-core part come first. In the form with setmaxnreg each part is whole
// warpgroups. The registers that one part takes must not exceed those that the other gives, because
// the kernel would wait for ever.

#ifndef GPUSHARE_DEVICE_FUSED_LAYOUT_CUH_
#define GPUSHARE_DEVICE_FUSED_LAYOUT_CUH_

#include <gpushare/device/fused_variants.h>

#include <cstddef>
#include <cstdint>
#include <gpushare/device/body.cuh>
#include <gpushare/device/worker.cuh>

namespace gpushare::device {

// Properties of a body that only fusing needs. Specialise it next to the body; derive from the
// general template to keep its other values.
template <class Body>
struct FusedTraits {
  // The body uses wgmma or setmaxnreg, which only sm_90a has.
  static constexpr bool kOnlySm90a = false;
  // Fewest registers of a thread without spilling; 0: unknown.
  static constexpr int kRegistersMin = 0;
  // Fewest registers at launch, before setmaxnreg adds any; 0: unknown. ptxas keeps the
  // accumulators of wgmma within these. It refuses n = 128 below 90 registers and n = 256 below
  // 154, and serialises wgmma that does not fit.
  static constexpr int kLaunchRegistersMin = 0;
};

namespace internal {

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kBlockThreadsMax = 1024;
inline constexpr int kSmRegisters = 65536;
inline constexpr int kBlockSharedBytesMax = 227 * 1024;  // of an H100 or H200
inline constexpr int kBlockBarriers = 16;
inline constexpr int kRegistersMax = 255;     // of a thread
inline constexpr int kRegisterStep = 8;       // granularity of setmaxnreg and of warp allocation
inline constexpr int kCudaRegistersMin = 48;  // 32 of a small body, 16 for two headers
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

// Most registers of a thread so that `blocks_per_sm` blocks fit in an SM.
constexpr int RegistersAt(int threads, int blocks_per_sm) {
  const int left = RoundDown(kSmRegisters / (threads * blocks_per_sm), kRegisterStep);
  return left < kRegistersMax ? left : kRegistersMax;
}

}  // namespace internal

// The layout of a fused block; kFormOf is one of GPUSHARE_FUSED_...
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

  // Threads. A block that uses wgmma must start at a whole warpgroup.
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

  static_assert(!FusedTraits<CudaBody>::kOnlySm90a ||
                    (kTensorThreads % kWarpgroup == 0 &&
                     (kCudaBlocks == 1 || kCudaStride % kWarpgroup == 0)),
                "wgmma in the second part wants whole warpgroups before it");

  // Barriers: 0 is unused, then one for each copy of a part, then the extra ones.
  static constexpr int kTensorBarrier = 1;
  static constexpr int kCudaBarrier = kTensorBarrier + kTensorBlocks;
  static constexpr int kTensorExtra = kCudaBarrier + kCudaBlocks;
  static constexpr int kCudaExtra = kTensorExtra + kTensorBlocks * kBodyExtraBarriers<TensorBody>;
  static constexpr int kBarriers = kCudaExtra + kCudaBlocks * kBodyExtraBarriers<CudaBody>;

  // Shared memory, as offsets: Shared of each body, then WorkerShared of each worker loop.
  static constexpr int kWorkers = kTensorBlocks + kCudaBlocks;
  // In static shared memory each Shared starts at its own alignment, at least 128 bytes. In dynamic
  // shared memory small CUDA-core bodies do the same, and the others start at kSharedAlignment.
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

  // Registers of a thread: at launch, and in each part after setmaxnreg.
  static constexpr bool kFits =
      kThreads <= internal::kBlockThreadsMax && kBarriers <= internal::kBlockBarriers &&
      kSharedBytes <= internal::kBlockSharedBytesMax && kMinBlocksPerSm * kThreads <= 2048;
  static constexpr int kRegisters =
      kFits ? internal::RegistersAt(kThreads, kMinBlocksPerSm) : internal::kRegisterStep;
  // The CUDA-core body keeps the registers that its own launch bounds allow.
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

  // Whether some GPU can run it. If none can, the kernel compiles to a trap.
  static constexpr bool kFeasible = kFits && kRegistersAddUp && kRegistersAreEnough;
  static constexpr bool kOnlySm90a =
      kMovesRegisters || FusedTraits<TensorBody>::kOnlySm90a || FusedTraits<CudaBody>::kOnlySm90a;
  static constexpr int kLaunchThreads = kFeasible ? kThreads : 32;
  static constexpr int kLaunchBlocks = kFeasible ? kMinBlocksPerSm : 1;

  static constexpr uint32_t StaticBytes() { return kDynamic ? 0 : kSharedBytes; }
  static constexpr uint32_t DynamicBytes() { return kDynamic ? kSharedBytes : 0; }
};

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_FUSED_LAYOUT_CUH_
