// What every GEMM of this folder computes, C[m, n] = A[m, k] * B[n, k]^T, and how the packed
// parameters of one are made for buffers that somebody else owns (benchmarks, fused pairs).
//
// A, B and C are row-major bf16 with rows of k, k and n elements; sums are float32, rounded once to
// bf16. k and n are multiples of 8, so that every row starts at a multiple of 16 bytes.
//
// Threads: any; nothing is kept but the answer for each device. The device is the current one.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_PROBLEM_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_PROBLEM_H_

#include <cstring>
#include <vector>

#include "kernels/grid.h"
#include "kernels/status.h"

namespace gpushare::kernels {

struct GemmProblem {
  int m = 0;
  int n = 0;
  int k = 0;
  const void* a = nullptr;  // device memory, 16-byte aligned
  const void* b = nullptr;
  void* c = nullptr;
};

// Parameters as the bytes that a launch copies.
template <class Params>
void PackParams(const Params& made, std::vector<unsigned char>* packed) {
  packed->resize(sizeof(made));
  std::memcpy(packed->data(), &made, sizeof(made));
}

// The packed parameters of the kernel of this name for this problem, and its original grid; each
// block task has slots of its own. Errors: a name that is no GEMM's, sizes that it does not do.
Status MakeGemmParams(const char* kernel, const GemmProblem& problem,
                      std::vector<unsigned char>* params, Grid* grid);

// What MakeGemmParams calls for each kernel.
Status MakeGemmWgmmaParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                           Grid* grid);
Status MakeGemmRoomyParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                           Grid* grid);
Status MakeGemmMmaParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                         Grid* grid);
Status MakeGemmSkinnyParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                            Grid* grid);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_PROBLEM_H_
