// The special-function results that a body wants as one instruction. The standard functions without
// fast-math scale subnormal arguments, three instructions more; no argument here is subnormal.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_APPROX_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_APPROX_CUH_

namespace gpushare::kernels {

// 1 / sqrt(x) within 2^-22.4, relatively.
__device__ __forceinline__ float ApproxRsqrt(float x) {
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// 2^x within 2^-22, relatively.
__device__ __forceinline__ float ApproxExp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_APPROX_CUH_
