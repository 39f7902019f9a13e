// Parameters of gemm_mma: C[m, n] = A[m, k] * B[n, k]^T, bf16 with float32 sums, by mma.sync.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_MMA_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_MMA_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kGemmMmaTile = 128;  // rows and columns of C that a block task computes

struct GemmMmaParams {
  const uint16_t* a;  // bf16, rows 16-byte aligned
  const uint16_t* b;
  uint16_t* c;
  uint32_t m;
  uint32_t n;
  uint32_t k;        // n and k are multiples of 8
  uint32_t tiles_m;  // whole or cut tiles; block task b computes tile b % (tiles_m * tiles_n)
  uint32_t tiles_n;
};

inline GemmMmaParams GemmMmaParamsOf(const uint16_t* a, const uint16_t* b, uint16_t* c, uint32_t m,
                                     uint32_t n, uint32_t k) {
  return {a,
          b,
          c,
          m,
          n,
          k,
          (m + kGemmMmaTile - 1) / kGemmMmaTile,
          (n + kGemmMmaTile - 1) / kGemmMmaTile};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_MMA_H_
