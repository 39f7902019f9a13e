#include "benchmarks/gpu/gemm/gemm_alternatives.h"

#include "kernels/tensor/gemm_skinny.h"

extern "C" {
int gpushare_skinny_8_1_variants(gpushare_kernel_variants* out);
int gpushare_skinny_16_1_variants(gpushare_kernel_variants* out);
int gpushare_skinny_4_2_variants(gpushare_kernel_variants* out);
int gpushare_skinny_6_2_variants(gpushare_kernel_variants* out);
int gpushare_skinny_8_2_variants(gpushare_kernel_variants* out);
int gpushare_skinny_2_8_variants(gpushare_kernel_variants* out);
int gpushare_skinny_4_4_variants(gpushare_kernel_variants* out);
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
  constexpr GemmTileShape kPanel = {kSkinnyRowsMax, kSkinnyColumns};
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
      {"skinny_8_1", gpushare_skinny_8_1_variants, kPanel, 0, 0, true},
      {"skinny_16_1", gpushare_skinny_16_1_variants, kPanel, 0, 0, true},
      {"skinny_4_2", gpushare_skinny_4_2_variants, kPanel, 0, 0, true},
      {"skinny_6_2", gpushare_skinny_6_2_variants, kPanel, 0, 0, true},
      {"skinny_8_2", gpushare_skinny_8_2_variants, kPanel, 0, 0, true},
      {"skinny_2_8", gpushare_skinny_2_8_variants, kPanel, 0, 0, true},
      {"skinny_4_4", gpushare_skinny_4_4_variants, kPanel, 0, 0, true},
      {"skinny_portable", gpushare_gemm_skinny_portable_variants, kPanel, 0, 0, true},
  };
}

Status MakeAlternativeParams(const GemmAlternative& alternative, const GemmProblem& problem,
                             std::vector<unsigned char>* params, Grid* grid) {
  if (alternative.skinny) return MakeGemmSkinnyParams(problem, params, grid);
  GemmWgmmaParams made = {};
  Status status =
      MakeWgmmaParams(alternative.shape, problem, alternative.tiles_per_task, 0, &made, grid);
  if (!status.ok()) return status;
  if (alternative.group != 0) made.group = alternative.group;
  PackParams(made, params);
  return {};
}

}  // namespace gpushare::kernels
