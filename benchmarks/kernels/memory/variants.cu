// The variants of every body of this folder.

#include <gpushare/device/variants.cuh>

#include "benchmarks/kernels/memory/black_scholes.cuh"
#include "benchmarks/kernels/memory/hotspot.cuh"
#include "benchmarks/kernels/memory/lbm.cuh"
#include "benchmarks/kernels/memory/pathfinder.cuh"
#include "benchmarks/kernels/memory/sad.cuh"
#include "benchmarks/kernels/memory/stencil.cuh"
#include "benchmarks/kernels/memory/streaming.cuh"
#include "benchmarks/kernels/memory/transpose.cuh"
#include "benchmarks/kernels/memory/vector_add.cuh"

namespace gpushare::kernels {

GPUSHARE_KERNEL(gpushare_black_scholes);
GPUSHARE_KERNEL(gpushare_hotspot);
GPUSHARE_KERNEL(gpushare_lbm);
GPUSHARE_KERNEL(gpushare_pathfinder);
GPUSHARE_KERNEL(gpushare_sad);
GPUSHARE_KERNEL(gpushare_stencil);
GPUSHARE_KERNEL(gpushare_streaming);
GPUSHARE_KERNEL(gpushare_transpose);
GPUSHARE_KERNEL(gpushare_vector_add);

}  // namespace gpushare::kernels
