// Parameters of the sparse matrix-vector product in CSR: out[r] = sum of values[e] * x[columns[e]].

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_SPMV_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_SPMV_H_

#include <cstdint>

#include "benchmarks/kernels/irregular/csr.h"

namespace gpushare::kernels {

using SpmvShape = CsrShape<64, 33>;               // 33 to 96 elements a row
constexpr uint32_t kSpmvVectorLength = 1U << 20;  // 4 MB of x: beyond L1, within L2

GPUSHARE_HOST_DEVICE inline uint32_t SpmvColumn(uint32_t seed, uint32_t element) {
  return Hash(seed, element) & (kSpmvVectorLength - 1);
}

struct SpmvParams {
  const uint32_t* begins;  // of each row, and the end of the last
  const uint32_t* columns;
  const float* values;
  const float* x;
  float* out;
  uint32_t rows;  // of a block task, a multiple of 8
  uint32_t ring;  // block task b computes chunk b % ring
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_SPMV_H_
