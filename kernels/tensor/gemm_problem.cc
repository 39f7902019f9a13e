#include "kernels/tensor/gemm_problem.h"

#include <cstring>
#include <string>

namespace gpushare::kernels {
namespace {

struct Maker {
  const char* kernel;
  Status (*make)(const GemmProblem&, std::vector<unsigned char>*, Grid*);
};

constexpr Maker kMakers[] = {{"gemm_wgmma", MakeGemmWgmmaParams},
                             {"gemm_roomy", MakeGemmRoomyParams},
                             {"gemm_mma", MakeGemmMmaParams},
                             {"gemm_skinny", MakeGemmSkinnyParams},
                             {"gemm_skinny_compact", MakeGemmSkinnyParams}};

}  // namespace

Status MakeGemmParams(const char* kernel, const GemmProblem& problem,
                      std::vector<unsigned char>* params, Grid* grid) {
  for (const Maker& maker : kMakers) {
    if (std::strcmp(maker.kernel, kernel) == 0) return maker.make(problem, params, grid);
  }
  return InvalidOption("The kernel '" + std::string(kernel) + "' is no GEMM.");
}

}  // namespace gpushare::kernels
