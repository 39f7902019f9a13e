#include "benchmarks/gpu/gemm_alternatives.h"

#include <string>

#include "benchmarks/gpu/skinny_alternatives.h"
#include "src/cuda/kernels/workload_base.h"

extern "C" {
int gpushare_skinny_deep_variants(gpushare_kernel_variants* out);
int gpushare_skinny_fenced_variants(gpushare_kernel_variants* out);
int gpushare_skinny_plain_variants(gpushare_kernel_variants* out);
int gpushare_skinny_wide_variants(gpushare_kernel_variants* out);
int gpushare_skinny_wide_deep_variants(gpushare_kernel_variants* out);
int gpushare_wgmma_alone_variants(gpushare_kernel_variants* out);
int gpushare_wgmma_small_variants(gpushare_kernel_variants* out);
int gpushare_wgmma_small_alone_variants(gpushare_kernel_variants* out);
int gpushare_wgmma_stores_variants(gpushare_kernel_variants* out);
int gpushare_wgmma_two_variants(gpushare_kernel_variants* out);
int gpushare_roomy_alone_variants(gpushare_kernel_variants* out);
}

namespace gpushare::kernels {

std::vector<GemmAlternative> GemmAlternatives() {
  constexpr GemmTileShape kLarge = {128, 256};
  constexpr GemmTileShape kSmall = {128, 128};
  constexpr GemmTileShape kPanel = {kSkinnyTmaRows, 64};
  constexpr GemmTileShape kWidePanel = {kSkinnyTmaRows, 128};
  return {
      {"wgmma_one_tile", GemmWgmmaVariants, kLarge, 1, 0},
      {"wgmma_four_tiles", GemmWgmmaVariants, kLarge, 4, 0},
      {"wgmma_group_8", GemmWgmmaVariants, kLarge, 0, 8},
      {"wgmma_alone", gpushare_wgmma_alone_variants, kLarge, 0, 0},
      {"wgmma_stores", gpushare_wgmma_stores_variants, kLarge, 0, 0},
      {"wgmma_small", gpushare_wgmma_small_variants, kSmall, 0, 0},
      {"wgmma_small_alone", gpushare_wgmma_small_alone_variants, kSmall, 0, 0},
      {"wgmma_two", gpushare_wgmma_two_variants, kSmall, 1, 0},
      {"roomy_one_tile", GemmRoomyVariants, kSmall, 1, 0},
      {"roomy_alone", gpushare_roomy_alone_variants, kLarge, 0, 0},
      {"skinny_plain", gpushare_skinny_plain_variants, kPanel, 0, 0, true},
      {"skinny_fenced", gpushare_skinny_fenced_variants, kPanel, 0, 0, true},
      {"skinny_deep", gpushare_skinny_deep_variants, kPanel, 0, 0, true},
      {"skinny_wide", gpushare_skinny_wide_variants, kWidePanel, 0, 0, true},
      {"skinny_wide_deep", gpushare_skinny_wide_deep_variants, kWidePanel, 0, 0, true},
  };
}

Status MakeSkinnyTmaParams(const GemmProblem& problem, int columns, SkinnyTmaParams* params,
                           Grid* grid) {
  constexpr int kKMultiple = 2 * kGemmKBlock;  // the deepest stage
  if (problem.m > kSkinnyTmaRows || problem.n % columns != 0 || problem.k % kKMultiple != 0) {
    return InvalidOption("A skinny GEMM has up to " + std::to_string(kSkinnyTmaRows) +
                         " rows, whole panels of " + std::to_string(columns) +
                         " columns and k in multiples of " + std::to_string(kKMultiple) + ", not " +
                         std::to_string(problem.m) + " x " + std::to_string(problem.n) + " x " +
                         std::to_string(problem.k) + ".");
  }
  GemmWgmmaParams maps = {};
  const Status status = MakeWgmmaParams({kSkinnyTmaRows, columns}, problem, 1, 0, &maps, grid);
  if (!status.ok()) return status;
  params->activations = maps.a;
  params->weights = maps.b;
  params->c = static_cast<uint16_t*>(problem.c);
  params->m = static_cast<uint32_t>(problem.m);
  params->n = static_cast<uint32_t>(problem.n);
  params->k_blocks = static_cast<uint32_t>(problem.k / kGemmKBlock);
  params->panels = static_cast<uint32_t>(problem.n / columns);
  *grid = {params->panels, 1, 1};
  return {};
}

Status MakeAlternativeParams(const GemmAlternative& alternative, const GemmProblem& problem,
                             std::vector<unsigned char>* params, Grid* grid) {
  if (alternative.skinny) {
    SkinnyTmaParams made = {};
    const Status status = MakeSkinnyTmaParams(problem, alternative.shape.n, &made, grid);
    if (status.ok()) PackParams(made, params);
    return status;
  }
  GemmWgmmaParams made = {};
  const Status status =
      MakeWgmmaParams(alternative.shape, problem, alternative.tiles_per_task, 0, &made, grid);
  if (!status.ok()) return status;
  if (alternative.group != 0) made.group = alternative.group;
  PackParams(made, params);
  return {};
}

}  // namespace gpushare::kernels
