#include "benchmarks/gpu/gemm_alternatives.h"

#include <cstring>

extern "C" {
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
  };
}

Status MakeAlternativeParams(const GemmAlternative& alternative, const GemmProblem& problem,
                             std::vector<unsigned char>* params, Grid* grid) {
  GemmWgmmaParams made = {};
  const Status status =
      MakeWgmmaParams(alternative.shape, problem, alternative.tiles_per_task, 0, &made, grid);
  if (!status.ok()) return status;
  if (alternative.group != 0) made.group = alternative.group;
  params->resize(sizeof(made));
  std::memcpy(params->data(), &made, sizeof(made));
  return {};
}

}  // namespace gpushare::kernels
