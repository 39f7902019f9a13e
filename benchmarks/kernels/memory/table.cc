// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"

extern "C" {
gpushare::kernels::VariantsFunction gpushare_black_scholes_variants, gpushare_hotspot_variants,
    gpushare_lbm_variants, gpushare_pathfinder_variants, gpushare_sad_variants,
    gpushare_stencil_variants, gpushare_streaming_variants, gpushare_transpose_variants,
    gpushare_vector_add_variants;
}

namespace gpushare::kernels {

extern const WorkloadMaker kMakeBlackScholes, kMakeHotspot, kMakeLbm, kMakePathfinder, kMakeSad,
    kMakeStencil, kMakeStreaming, kMakeTranspose, kMakeVectorAdd;

std::vector<CatalogueKernel> MemoryKernels() {
  constexpr const char* kDramFormula = "bytes read and written once / DRAM bandwidth";
  return {
      {"streaming", gpushare_streaming_variants, Bound::kDram, kDramFormula, false, 59,
       kMakeStreaming, 4},
      {"stencil", gpushare_stencil_variants, Bound::kDram, kDramFormula, false, 59, kMakeStencil,
       6},
      {"black_scholes", gpushare_black_scholes_variants, Bound::kDram, kDramFormula, false, 50,
       kMakeBlackScholes, 6},
      {"vector_add", gpushare_vector_add_variants, Bound::kDram, kDramFormula, false, 25,
       kMakeVectorAdd, 4},
      {"transpose", gpushare_transpose_variants, Bound::kDram, kDramFormula, false, 50,
       kMakeTranspose},
      // Four fit: 64 registers hold the 19 populations of a cell.
      {"lbm", gpushare_lbm_variants, Bound::kDram, kDramFormula, false, 40, kMakeLbm, 4},
      // Six fit: three rows of temperatures and one of power are in registers.
      {"hotspot", gpushare_hotspot_variants, Bound::kDram, kDramFormula, false, 50, kMakeHotspot,
       6},
      // Six fit: four rows of walls are in registers.
      {"pathfinder", gpushare_pathfinder_variants, Bound::kDram, kDramFormula, false, 40,
       kMakePathfinder, 6},
      // Five fit: 16 sums are in registers.
      {"sad", gpushare_sad_variants, Bound::kInteger,
       "7.3 integer instructions a place of a 4x4 block / (64 * SMs * clock)", false, 40, kMakeSad,
       5},
  };
}

}  // namespace gpushare::kernels
