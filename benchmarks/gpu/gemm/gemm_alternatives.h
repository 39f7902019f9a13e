// Other tiles, stages, producers, bodies and numbers of tiles a block task of the GEMMs, for
// gemm_benchmark --alternatives: what the catalogue's were chosen among. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_ALTERNATIVES_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_ALTERNATIVES_H_

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "kernels/tensor/gemm_problem.h"

namespace gpushare::benchmarks {

// A kernel that makes products, and what makes its parameters.
struct Contender {
  std::string name;
  std::function<int(gpushare_kernel_variants*)> variants;
  std::function<kernels::Status(const kernels::GemmProblem&, std::vector<unsigned char>*,
                                kernels::Grid*)>
      make;
  bool skinny = false;  // for few rows
};

std::vector<Contender> GemmAlternatives();

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_ALTERNATIVES_H_
