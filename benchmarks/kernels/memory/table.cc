// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"

extern "C" {
int gpushare_black_scholes_variants(gpushare_kernel_variants* out);
int gpushare_hotspot_variants(gpushare_kernel_variants* out);
int gpushare_lbm_variants(gpushare_kernel_variants* out);
int gpushare_pathfinder_variants(gpushare_kernel_variants* out);
int gpushare_sad_variants(gpushare_kernel_variants* out);
int gpushare_stencil_variants(gpushare_kernel_variants* out);
int gpushare_streaming_variants(gpushare_kernel_variants* out);
int gpushare_transpose_variants(gpushare_kernel_variants* out);
int gpushare_vector_add_variants(gpushare_kernel_variants* out);
}

namespace gpushare::kernels {

Status MakeBlackScholes(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeHotspot(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeLbm(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakePathfinder(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeSad(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeStencil(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeStreaming(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeTranspose(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);
Status MakeVectorAdd(const CatalogueKernel&, const WorkloadOptions&, std::unique_ptr<Workload>*);

std::vector<CatalogueKernel> MemoryKernels() {
  constexpr const char* kDramFormula = "bytes read and written once / DRAM bandwidth";
  return {
      {"streaming", gpushare_streaming_variants, Bound::kDram, kDramFormula, false, 59,
       MakeStreaming, 4},
      {"stencil", gpushare_stencil_variants, Bound::kDram, kDramFormula, false, 59, MakeStencil, 6},
      {"black_scholes", gpushare_black_scholes_variants, Bound::kDram, kDramFormula, false, 50,
       MakeBlackScholes, 6},
      {"vector_add", gpushare_vector_add_variants, Bound::kDram, kDramFormula, false, 25,
       MakeVectorAdd, 4},
      {"transpose", gpushare_transpose_variants, Bound::kDram, kDramFormula, false, 50,
       MakeTranspose},
      // Four fit: 64 registers hold the 19 populations of a cell.
      {"lbm", gpushare_lbm_variants, Bound::kDram, kDramFormula, false, 40, MakeLbm, 4},
      // Six fit: three rows of temperatures and one of power are in registers.
      {"hotspot", gpushare_hotspot_variants, Bound::kDram, kDramFormula, false, 50, MakeHotspot, 6},
      // Six fit: four rows of walls are in registers.
      {"pathfinder", gpushare_pathfinder_variants, Bound::kDram, kDramFormula, false, 40,
       MakePathfinder, 6},
      // Five fit: 16 sums are in registers.
      {"sad", gpushare_sad_variants, Bound::kInteger,
       "7.3 integer instructions a place of a 4x4 block / (64 * SMs * clock)", false, 40, MakeSad,
       5},
  };
}

}  // namespace gpushare::kernels
