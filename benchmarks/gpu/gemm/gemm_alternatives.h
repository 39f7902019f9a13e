// Other tiles, stages, producers, bodies and numbers of tiles a block task of the GEMMs, for
// gemm_benchmark --alternatives: what the catalogue's were chosen among. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_ALTERNATIVES_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_ALTERNATIVES_H_

#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "kernels/tensor/gemm_problem.h"
#include "kernels/tensor/gemm_wgmma.h"

namespace gpushare::kernels {

struct GemmAlternative {
  const char* name;
  int (*variants)(gpushare_kernel_variants* out);
  GemmTileShape shape;
  uint32_t tiles_per_task = 0;  // 0: as MakeWgmmaParams chooses
  uint32_t group = 0;           // 0: the usual
  bool skinny = false;          // a body of gemm_skinny: parameters as the catalogue's
};

std::vector<GemmAlternative> GemmAlternatives();

Status MakeAlternativeParams(const GemmAlternative& alternative, const GemmProblem& problem,
                             std::vector<unsigned char>* params, Grid* grid);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_ALTERNATIVES_H_
