// Hopper's asynchronous machinery as inline PTX: mbarriers, TMA copies, wgmma. sm_90a only: a body
// calls these inside `#if GPUSHARE_WGMMA`.
//
// Every wait is bounded: a barrier that does not complete within kWaitNsMax stops the kernel, so a
// bug never hangs a GPU.

#ifndef GPUSHARE_KERNELS_TENSOR_HOPPER_CUH_
#define GPUSHARE_KERNELS_TENSOR_HOPPER_CUH_

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GPUSHARE_WGMMA 1
#else
#define GPUSHARE_WGMMA 0
#endif

namespace gpushare::kernels::hopper {

// Far above a block task's length, also beside other kernels and under compute-sanitizer, and below
// the 4.29 s after which the clock's lower half repeats.
constexpr uint32_t kWaitNsMax = 3000000000U;

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// The lower half is enough for a difference, and saves registers beside a tile of sums.
__device__ __forceinline__ uint32_t GlobalTimer() {
  uint32_t ns;
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(ns)::"memory");
  return ns;
}

// mbarriers, by their shared address.

__device__ __forceinline__ void BarrierInit(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void BarrierInvalidate(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Makes the initialised barriers visible to TMA.
__device__ __forceinline__ void BarrierInitFence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void BarrierArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void BarrierArriveExpect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ bool BarrierTest(uint32_t barrier, uint32_t parity) {
  uint32_t complete;
  asm volatile(
      "{\n .reg .pred p;\n"
      " mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
      " selp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(complete)
      : "r"(barrier), "r"(parity)
      : "memory");
  return complete != 0;
}

// Waits until the phase of this parity has completed. False: that took too long.
__device__ __forceinline__ bool BarrierWaitBounded(uint32_t barrier, uint32_t parity) {
  if (BarrierTest(barrier, parity)) return true;
  const uint32_t begin = GlobalTimer();
  while (!BarrierTest(barrier, parity)) {
    if (GlobalTimer() - begin > kWaitNsMax) return false;
  }
  return true;
}

__device__ __forceinline__ void BarrierWait(uint32_t barrier, uint32_t parity) {
  if (!BarrierWaitBounded(barrier, parity)) asm volatile("trap;");
}

// A ring of stages that TMA fills: full[s] has one arrival, which expects the bytes of a stage, and
// empty[s] one of each reader. One thread; the others wait for it at a barrier of the block.
template <size_t kStages>
__device__ __forceinline__ void RingInit(uint64_t (&full)[kStages], uint64_t (&empty)[kStages],
                                         uint32_t readers) {
  for (size_t s = 0; s < kStages; ++s) {
    BarrierInit(SharedAddress(&full[s]), 1);
    BarrierInit(SharedAddress(&empty[s]), readers);
  }
  BarrierInitFence();
}

// One thread, when nobody waits any more: the memory may then be anything.
template <size_t kStages>
__device__ __forceinline__ void RingInvalidate(uint64_t (&full)[kStages],
                                               uint64_t (&empty)[kStages]) {
  for (size_t s = 0; s < kStages; ++s) {
    BarrierInvalidate(SharedAddress(&full[s]));
    BarrierInvalidate(SharedAddress(&empty[s]));
  }
}

// TMA.

__device__ __forceinline__ void PrefetchMap(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Loads the box at column `x`, row `y`; its bytes complete on the barrier.
__device__ __forceinline__ void LoadBox(uint32_t to, const void* map, uint32_t barrier, int32_t x,
                                        int32_t y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

// An L2 policy: what is loaded by it is given up first.
__device__ __forceinline__ uint64_t EvictFirst() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// As LoadBox, by an L2 policy: for bytes that nobody reads again.
__device__ __forceinline__ void LoadBoxOnce(uint32_t to, const void* map, uint32_t barrier,
                                            int32_t x, int32_t y, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void StoreBox(const void* map, uint32_t from, int32_t x, int32_t y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Stores to (to ^ exchanged) + further, both known at compile time. One asm statement, because the
// compiler would otherwise keep all exchanged addresses of a tile in registers.
__device__ __forceinline__ void StoreShared(uint32_t to, uint32_t exchanged, uint32_t further,
                                            __nv_bfloat162 pair) {
  asm volatile(
      "{\n .reg .b32 at;\n xor.b32 at, %0, %1;\n add.u32 at, at, %2;\n st.shared.b32 [at], "
      "%3;\n}\n" ::"r"(to),
      "r"(exchanged), "r"(further), "r"(*reinterpret_cast<const uint32_t*>(&pair))
      : "memory");
}

// Waits until all of this thread's stores but the last kLeft have read their shared memory, which
// may then be written again.
template <int kLeft>
__device__ __forceinline__ void WaitStoresRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}

// Waits until all of this thread's stores are in global memory.
__device__ __forceinline__ void WaitStores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Orders this thread's accesses to shared memory before those of TMA: TMA sees its writes, and
// writes only after its reads.
__device__ __forceinline__ void ProxyFence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// wgmma: all threads of a warpgroup.

__device__ __forceinline__ void WgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void WgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int kLeft>
__device__ __forceinline__ void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}

// A fence for the compiler: it neither moves uses of the sums across nor keeps copies of them.
template <int kCount>
__device__ __forceinline__ void HoldSums(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Makes the compiler have the value before what follows.
__device__ __forceinline__ void Hold(uint32_t value) { asm volatile("" ::"r"(value) : "memory"); }

// d = a * b^T (+ d when `adds`): 64 x kN sums of 16 products, both tiles by descriptor, K-major.
template <int kN>
struct Wgmma;

// NOLINTBEGIN(cppcoreguidelines-macro-usage): operands of inline assembly
#define GPUSHARE_ACC4(d, i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define GPUSHARE_ACC16(d, i)                                                 \
  GPUSHARE_ACC4(d, i), GPUSHARE_ACC4(d, (i) + 4), GPUSHARE_ACC4(d, (i) + 8), \
      GPUSHARE_ACC4(d, (i) + 12)
// NOLINTEND(cppcoreguidelines-macro-usage)

template <>
struct Wgmma<32> {
  static __device__ __forceinline__ void Issue(float (&d)[16], uint64_t a, uint64_t b,
                                               uint32_t adds) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %18, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7,"
        " %8, %9, %10, %11, %12, %13, %14, %15},"
        " %16, %17, p, 1, 1, 0, 0;\n}\n"
        : GPUSHARE_ACC16(d, 0)
        : "l"(a), "l"(b), "r"(adds));
  }
};

template <>
struct Wgmma<128> {
  static __device__ __forceinline__ void Issue(float (&d)[64], uint64_t a, uint64_t b,
                                               uint32_t adds) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7,"
        " %8, %9, %10, %11, %12, %13, %14, %15,"
        " %16, %17, %18, %19, %20, %21, %22, %23,"
        " %24, %25, %26, %27, %28, %29, %30, %31,"
        " %32, %33, %34, %35, %36, %37, %38, %39,"
        " %40, %41, %42, %43, %44, %45, %46, %47,"
        " %48, %49, %50, %51, %52, %53, %54, %55,"
        " %56, %57, %58, %59, %60, %61, %62, %63},"
        " %64, %65, p, 1, 1, 0, 0;\n}\n"
        : GPUSHARE_ACC16(d, 0), GPUSHARE_ACC16(d, 16), GPUSHARE_ACC16(d, 32), GPUSHARE_ACC16(d, 48)
        : "l"(a), "l"(b), "r"(adds));
  }
};

template <>
struct Wgmma<192> {
  static __device__ __forceinline__ void Issue(float (&d)[96], uint64_t a, uint64_t b,
                                               uint32_t adds) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %98, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7,"
        " %8, %9, %10, %11, %12, %13, %14, %15,"
        " %16, %17, %18, %19, %20, %21, %22, %23,"
        " %24, %25, %26, %27, %28, %29, %30, %31,"
        " %32, %33, %34, %35, %36, %37, %38, %39,"
        " %40, %41, %42, %43, %44, %45, %46, %47,"
        " %48, %49, %50, %51, %52, %53, %54, %55,"
        " %56, %57, %58, %59, %60, %61, %62, %63,"
        " %64, %65, %66, %67, %68, %69, %70, %71,"
        " %72, %73, %74, %75, %76, %77, %78, %79,"
        " %80, %81, %82, %83, %84, %85, %86, %87,"
        " %88, %89, %90, %91, %92, %93, %94, %95},"
        " %96, %97, p, 1, 1, 0, 0;\n}\n"
        : GPUSHARE_ACC16(d, 0), GPUSHARE_ACC16(d, 16), GPUSHARE_ACC16(d, 32), GPUSHARE_ACC16(d, 48),
          GPUSHARE_ACC16(d, 64), GPUSHARE_ACC16(d, 80)
        : "l"(a), "l"(b), "r"(adds));
  }
};

template <>
struct Wgmma<256> {
  static __device__ __forceinline__ void Issue(float (&d)[128], uint64_t a, uint64_t b,
                                               uint32_t adds) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, %130, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7,"
        " %8, %9, %10, %11, %12, %13, %14, %15,"
        " %16, %17, %18, %19, %20, %21, %22, %23,"
        " %24, %25, %26, %27, %28, %29, %30, %31,"
        " %32, %33, %34, %35, %36, %37, %38, %39,"
        " %40, %41, %42, %43, %44, %45, %46, %47,"
        " %48, %49, %50, %51, %52, %53, %54, %55,"
        " %56, %57, %58, %59, %60, %61, %62, %63,"
        " %64, %65, %66, %67, %68, %69, %70, %71,"
        " %72, %73, %74, %75, %76, %77, %78, %79,"
        " %80, %81, %82, %83, %84, %85, %86, %87,"
        " %88, %89, %90, %91, %92, %93, %94, %95,"
        " %96, %97, %98, %99, %100, %101, %102, %103,"
        " %104, %105, %106, %107, %108, %109, %110, %111,"
        " %112, %113, %114, %115, %116, %117, %118, %119,"
        " %120, %121, %122, %123, %124, %125, %126, %127},"
        " %128, %129, p, 1, 1, 0, 0;\n}\n"
        : GPUSHARE_ACC16(d, 0), GPUSHARE_ACC16(d, 16), GPUSHARE_ACC16(d, 32), GPUSHARE_ACC16(d, 48),
          GPUSHARE_ACC16(d, 64), GPUSHARE_ACC16(d, 80), GPUSHARE_ACC16(d, 96),
          GPUSHARE_ACC16(d, 112)
        : "l"(a), "l"(b), "r"(adds));
  }
};

#undef GPUSHARE_ACC16
#undef GPUSHARE_ACC4

}  // namespace gpushare::kernels::hopper

#endif  // GPUSHARE_KERNELS_TENSOR_HOPPER_CUH_
