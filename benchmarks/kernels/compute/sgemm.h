// Parameters of sgemm (Parboil's form): C = A * B in float32, A column-major, B and C row-major, so
// that a step in k is a row of memory of either factor.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SGEMM_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SGEMM_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kSgemmTile = 128;  // rows and columns of C a block task
constexpr uint32_t kSgemmDepth = 8;   // k of a stage; k is a multiple of it

struct SgemmParams {
  const float* a;  // k x m
  const float* b;  // k x n
  float* c;        // m x n
  uint32_t m;      // multiples of kSgemmTile
  uint32_t n;
  uint32_t k;
  uint32_t ring;  // block task b computes tile b % ring, counted row by row; (m / 128) * (n / 128)
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_SGEMM_H_
