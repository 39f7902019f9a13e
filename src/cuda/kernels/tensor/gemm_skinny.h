// Parameters of gemm_skinny: C[m, n] = A[m, k] * B[n, k]^T, bf16 with float32 sums, for few rows of
// A (tokens) and a large B (weights).

#ifndef GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_H_
#define GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kSkinnyColumns = 64;    // of C that a block task computes
constexpr uint32_t kSkinnyKMultiple = 32;  // of k

struct GemmSkinnyParams {
  const uint16_t* activations;  // A: bf16, 16-byte aligned
  const uint16_t* weights;      // B
  uint16_t* c;
  uint32_t m;  // 8, 16 or 32
  uint32_t n;  // a multiple of kSkinnyColumns
  uint32_t k;
  uint32_t panels;  // n / kSkinnyColumns; block task b computes panel b % panels
};

inline GemmSkinnyParams GemmSkinnyParamsOf(const uint16_t* activations, const uint16_t* weights,
                                           uint16_t* c, uint32_t m, uint32_t n, uint32_t k) {
  return {activations, weights, c, m, n, k, n / kSkinnyColumns};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_H_
