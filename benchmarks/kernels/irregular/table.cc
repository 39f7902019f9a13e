// The kernels of this group. What makes a workload of each is in NAME_workload.cc.

#include "benchmarks/kernels/groups.h"

extern "C" {
gpushare::kernels::VariantsFunction gpushare_bfs_variants, gpushare_histogram_variants,
    gpushare_nn_variants, gpushare_pointer_chase_variants, gpushare_spmv_variants;
}

namespace gpushare::kernels {

extern const WorkloadMaker kMakeBfs, kMakeHistogram, kMakeNn, kMakePointerChase, kMakeSpmv;

std::vector<CatalogueKernel> IrregularKernels() {
  return {
      {"spmv", gpushare_spmv_variants, Bound::kL2,
       "8 bytes of the matrix and a 32-byte sector of the vector an element / L2 bandwidth", false,
       20, kMakeSpmv, 4},
      {"bfs", gpushare_bfs_variants, Bound::kL2,
       "36 bytes a neighbour looked at and 13 a vertex / L2 bandwidth", false, 40, kMakeBfs, 4,
       "The lists of a warp's vertices differ in length, and all lanes wait for the longest "
       "search."},
      {"histogram", gpushare_histogram_variants, Bound::kShared,
       "a counter of 4 bytes read and written a byte / (128 * SMs * clock)", false, 20,
       kMakeHistogram, 8,
       "Random values meet in a bank: the fullest one serves 3.2 counters of a warp in the mean."},
      {"pointer_chase", gpushare_pointer_chase_variants, Bound::kLatency,
       "380 ns a hop (measured; 128 MB of sectors scattered over 512 MB), and one hop at a time of "
       "each warp",
       false, 40, kMakePointerChase},
      {"nn", gpushare_nn_variants, Bound::kDram,
       "bytes read once / DRAM bandwidth; above 1 of what reads and writes reach together, because "
       "reads alone reach more and L2 keeps up to 6 % of the input",
       false, 20, kMakeNn, 4},
  };
}

}  // namespace gpushare::kernels
