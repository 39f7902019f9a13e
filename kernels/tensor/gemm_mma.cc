// Parameters of gemm_mma for buffers that somebody else owns. See gemm_problem.h.

#include "kernels/tensor/gemm_mma.h"

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor/gemm_problem.h"

namespace gpushare::kernels {

Status MakeGemmMmaParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                         Grid* grid) {
  if (problem.m < 1 || problem.n < 8 || problem.k < 8 || problem.n % 8 != 0 || problem.k % 8 != 0) {
    return InvalidOption("gemm_mma is asked for " + std::to_string(problem.m) + " x " +
                         std::to_string(problem.n) + " x " + std::to_string(problem.k) +
                         ", and n and k must be positive multiples of 8.");
  }
  const GemmMmaParams made = GemmMmaParamsOf(
      static_cast<const uint16_t*>(problem.a), static_cast<const uint16_t*>(problem.b),
      static_cast<uint16_t*>(problem.c), static_cast<uint32_t>(problem.m),
      static_cast<uint32_t>(problem.n), static_cast<uint32_t>(problem.k));
  const uint64_t tiles = static_cast<uint64_t>(made.tiles_m) * made.tiles_n;
  if (tiles > INT32_MAX) {
    return InvalidOption("gemm_mma has " + std::to_string(tiles) +
                         " tiles, and a grid has 2147483647 blocks at most.");
  }
  PackParams(made, params);
  *grid = {made.tiles_m * made.tiles_n, 1, 1};
  return {};
}

}  // namespace gpushare::kernels
