// The instructions of the portable Tensor-core kernels, sm_80 and up: asynchronous copies of 16
// bytes, ldmatrix, mma.m16n8k16 in bf16, rounding to bf16.

#ifndef GPUSHARE_KERNELS_TENSOR_MMA_CUH_
#define GPUSHARE_KERNELS_TENSOR_MMA_CUH_

#include <cstdint>

namespace gpushare::kernels::mma {

__device__ __forceinline__ uint32_t SharedAddress(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// Copies 16 bytes past L1. Where `valid` is false the 16 bytes become zero, and nothing is read.
__device__ __forceinline__ void CopyAsync(uint32_t shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most the newest kPending of the thread's groups are under way.
template <int kPending>
__device__ __forceinline__ void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ void LoadMatrices(uint32_t (&to)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared)
               : "memory");
}

// Not volatile: the compiler may move products between loads, their data dependences order them.
__device__ __forceinline__ void Mma(float (&sums)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                    uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Two values rounded to nearest even, the first in the low half: memory order.
__device__ __forceinline__ uint32_t PackBf16(float first, float second) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}

__device__ __forceinline__ void StoreShared(uint32_t shared, uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(value) : "memory");
}

__device__ __forceinline__ uint4 LoadShared(uint32_t shared) {
  uint4 value;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(shared)
               : "memory");
  return value;
}

// Loads without a place in L1: for data that an SM reads once and other SMs read too. Not for data
// that this kernel writes.
__device__ __forceinline__ uint4 LoadPastL1(const void* global) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(global));
  return value;
}

}  // namespace gpushare::kernels::mma

#endif  // GPUSHARE_KERNELS_TENSOR_MMA_CUH_
