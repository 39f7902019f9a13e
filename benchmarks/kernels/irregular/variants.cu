// The variants of every body of this folder.

#include <gpushare/device/variants.cuh>

#include "benchmarks/kernels/irregular/bfs.cuh"
#include "benchmarks/kernels/irregular/histogram.cuh"
#include "benchmarks/kernels/irregular/nn.cuh"
#include "benchmarks/kernels/irregular/pointer_chase.cuh"
#include "benchmarks/kernels/irregular/spmv.cuh"

namespace gpushare::kernels {

GPUSHARE_KERNEL(gpushare_bfs);
GPUSHARE_KERNEL(gpushare_histogram);
GPUSHARE_KERNEL(gpushare_nn);
GPUSHARE_KERNEL(gpushare_pointer_chase);
GPUSHARE_KERNEL(gpushare_spmv);

}  // namespace gpushare::kernels
