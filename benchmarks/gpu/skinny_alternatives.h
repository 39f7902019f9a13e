// Parameters of the TMA forms of gemm_skinny that gemm_benchmark --alternatives compares
// (skinny_alternatives.cuh), and how they are made. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_GPU_SKINNY_ALTERNATIVES_H_
#define GPUSHARE_BENCHMARKS_GPU_SKINNY_ALTERNATIVES_H_

#include <cstdint>

#include "src/cuda/kernels/catalogue.h"
#include "src/cuda/kernels/tensor/gemm_problem.h"
#include "src/cuda/kernels/tensor/gemm_wgmma.h"

namespace gpushare::kernels {

constexpr int kSkinnyTmaRows = 32;  // of A; rows past the end are zeros and are not stored

struct SkinnyTmaParams {
  TensorMap activations;  // boxes of 32 rows x 64 values of k
  TensorMap weights;      // boxes of a panel's columns x 64
  uint16_t* c;
  uint32_t m;
  uint32_t n;
  uint32_t k_blocks;  // of 64
  uint32_t panels;    // block task b computes panel b % panels
};

// `columns`: of a panel. Errors: a shape that panels or k blocks do not divide, CUDA's.
Status MakeSkinnyTmaParams(const GemmProblem& problem, int columns, SkinnyTmaParams* params,
                           Grid* grid);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_GPU_SKINNY_ALTERNATIVES_H_
