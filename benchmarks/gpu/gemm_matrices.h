// The operands of a GEMM, where its result goes, and the comparison of a result with cuBLASLt's.
// Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_MATRICES_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_MATRICES_H_

#include <cstdint>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/device_buffer.h"
#include "kernels/tensor/gemm_problem.h"

namespace gpushare::kernels {

struct GemmShape {
  int m;
  int n;
  int k;
  bool skinny;
};

struct GemmMatrices {
  DeviceBuffer a, b, c, cublaslt_c;
  std::vector<uint16_t> expected;  // cublaslt_c, once it has been computed and read

  // Operands from seeds; cublaslt_c in no state that a product would give.
  Status Make(const GemmShape& shape);
  GemmProblem Problem(const GemmShape& shape, const DeviceBuffer& to) const {
    return {shape.m, shape.n, shape.k, a.data(), b.data(), to.data()};
  }
};

struct GemmComparison {
  uint64_t wrong = 0;  // elements
  uint64_t not_equal = 0;
  double difference_max = 0;
};

// `c` with `expected`.
Status Compare(const GemmMatrices& matrices, GemmComparison* comparison);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_MATRICES_H_
