// Parameters of the skinny GEMMs for buffers that somebody else owns (gemm_problem.h), and which of
// the two bodies the current device runs.

#include "kernels/tensor/gemm_skinny.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor/gemm_problem.h"
#include "kernels/tensor/gemm_wgmma.h"

namespace gpushare::kernels {
namespace {

// The tensor maps are made only where sm_90a's body reads them: other GPUs may have no encoder.
Status FillParams(const GemmProblem& problem, GemmSkinnyParams* params) {
  GemmWgmmaParams maps = {};
  Status runs = CheckWgmma();
  if (runs.ok()) {
    constexpr GemmTileShape kShape = {kSkinnyRowsMax, kSkinnyColumns};
    Grid grid;
    Status status = MakeWgmmaParams(kShape, problem, 1, 1, &maps, &grid);
    if (!status.ok()) return status;
  } else if (runs.code != cudaErrorNoKernelImageForDevice) {
    return runs;
  }
  *params = {};
  params->activations_map = maps.a;
  params->weights_map = maps.b;
  params->activations = static_cast<const uint16_t*>(problem.a);
  params->weights = static_cast<const uint16_t*>(problem.b);
  params->c = static_cast<uint16_t*>(problem.c);
  params->m = static_cast<uint32_t>(problem.m);
  params->n = static_cast<uint32_t>(problem.n);
  params->k = static_cast<uint32_t>(problem.k);
  params->panels = params->n / kSkinnyColumns;
  return {};
}

// The variants of sm_90a's body where the device runs it, else those of the portable body.
int VariantsOfDevice(int (*sm90a)(gpushare_kernel_variants*), gpushare_kernel_variants* out) {
  const Status runs = CheckWgmma();
  if (runs.ok()) return sm90a(out);
  if (runs.code != cudaErrorNoKernelImageForDevice) return runs.code;
  return gpushare_gemm_skinny_portable_variants(out);
}

}  // namespace

int GemmSkinnyVariants(gpushare_kernel_variants* out) {
  return VariantsOfDevice(gpushare_gemm_skinny_variants, out);
}

int GemmSkinnyCompactVariants(gpushare_kernel_variants* out) {
  return VariantsOfDevice(gpushare_gemm_skinny_compact_variants, out);
}

Status MakeGemmSkinnyParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                            Grid* grid) {
  const bool rows = problem.m == 8 || problem.m == 16 || problem.m == 32;
  const auto columns = static_cast<int>(kSkinnyColumns);
  const auto multiple = static_cast<int>(kSkinnyKMultiple);
  if (!rows || problem.n < columns || problem.k < multiple || problem.n % columns != 0 ||
      problem.k % multiple != 0) {
    return InvalidOption("gemm_skinny is asked for " + std::to_string(problem.m) + " x " +
                         std::to_string(problem.n) + " x " + std::to_string(problem.k) +
                         ", and m must be 8, 16 or 32, n a multiple of " + std::to_string(columns) +
                         " and k of " + std::to_string(multiple) + ".");
  }
  GemmSkinnyParams made = {};
  Status status = FillParams(problem, &made);
  if (!status.ok()) return status;
  PackParams(made, params);
  *grid = {made.panels, 1, 1};
  return {};
}

}  // namespace gpushare::kernels
