#include "benchmarks/gpu/gemm/gemm_alternatives.h"

#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_wgmma.h"

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

namespace gpushare::benchmarks {
namespace {

using kernels::GemmProblem;
using kernels::GemmTileShape;
using kernels::Grid;
using Variants = int (*)(gpushare_kernel_variants* out);

// A tile's body of wgmma. `tiles_per_task`: 0 as MakeWgmmaParams chooses; `group`: 0 the usual.
Contender Wgmma(const char* name, Variants variants, GemmTileShape tile, uint32_t tiles_per_task,
                uint32_t group) {
  return {name, variants,
          [=](const GemmProblem& problem, std::vector<unsigned char>* params, Grid* grid) {
            kernels::GemmWgmmaParams made = {};
            const kernels::Status status =
                MakeWgmmaParams(tile, problem, tiles_per_task, 0, &made, grid);
            if (group != 0) made.group = group;
            if (status.ok()) kernels::PackParams(made, params);
            return status;
          }};
}

// A body of gemm_skinny: parameters as the catalogue's.
Contender Skinny(const char* name, Variants variants) {
  return {name, variants, kernels::MakeGemmSkinnyParams, true};
}

}  // namespace

std::vector<Contender> GemmAlternatives() {
  constexpr GemmTileShape kLarge = {128, 256};
  constexpr GemmTileShape kSmall = {128, 128};
  return {
      Wgmma("wgmma_one_tile", kernels::GemmWgmmaVariants, kLarge, 1, 0),
      Wgmma("wgmma_four_tiles", kernels::GemmWgmmaVariants, kLarge, 4, 0),
      Wgmma("wgmma_group_8", kernels::GemmWgmmaVariants, kLarge, 0, 8),
      Wgmma("wgmma_alone", gpushare_wgmma_alone_variants, kLarge, 0, 0),
      Wgmma("wgmma_stores", gpushare_wgmma_stores_variants, kLarge, 0, 0),
      Wgmma("wgmma_small", gpushare_wgmma_small_variants, kSmall, 0, 0),
      Wgmma("wgmma_small_alone", gpushare_wgmma_small_alone_variants, kSmall, 0, 0),
      Wgmma("wgmma_two", gpushare_wgmma_two_variants, kSmall, 1, 0),
      Wgmma("roomy_one_tile", kernels::GemmRoomyVariants, kSmall, 1, 0),
      Wgmma("roomy_alone", gpushare_roomy_alone_variants, kLarge, 0, 0),
      Skinny("skinny_8_1", gpushare_skinny_8_1_variants),
      Skinny("skinny_16_1", gpushare_skinny_16_1_variants),
      Skinny("skinny_4_2", gpushare_skinny_4_2_variants),
      Skinny("skinny_6_2", gpushare_skinny_6_2_variants),
      Skinny("skinny_8_2", gpushare_skinny_8_2_variants),
      Skinny("skinny_2_8", gpushare_skinny_2_8_variants),
      Skinny("skinny_4_4", gpushare_skinny_4_4_variants),
      Skinny("skinny_portable", kernels::gpushare_gemm_skinny_portable_variants),
  };
}

}  // namespace gpushare::benchmarks
