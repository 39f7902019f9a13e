// Other rings of gemm_skinny. 'deep': half as many barriers as with one k block a stage. 'more':
// as many bytes as the catalogue's, a k block a stage. 'groups': two of four consumer warps.
// 'four', 'five': more bytes on their way, and less shared memory for others.

#include <gpushare/device/variants.cuh>

#include "src/cuda/kernels/tensor/gemm_skinny.cuh"

namespace gpushare::kernels {

// Stages, k blocks of a stage, groups of consumer warps.
struct gpushare_skinny_more : gemm_skinny::Gemm<8, 1> {};
struct gpushare_skinny_deep : gemm_skinny::Gemm<3, 2> {};
struct gpushare_skinny_deep_four : gemm_skinny::Gemm<4, 2> {};
struct gpushare_skinny_deep_five : gemm_skinny::Gemm<5, 2> {};
struct gpushare_skinny_groups : gemm_skinny::Gemm<3, 2, 2> {};
struct gpushare_skinny_groups_four : gemm_skinny::Gemm<4, 2, 2> {};
struct gpushare_skinny_groups_five : gemm_skinny::Gemm<5, 2, 2> {};

GPUSHARE_KERNEL(gpushare_skinny_more);
GPUSHARE_KERNEL(gpushare_skinny_deep);
GPUSHARE_KERNEL(gpushare_skinny_deep_four);
GPUSHARE_KERNEL(gpushare_skinny_deep_five);
GPUSHARE_KERNEL(gpushare_skinny_groups);
GPUSHARE_KERNEL(gpushare_skinny_groups_four);
GPUSHARE_KERNEL(gpushare_skinny_groups_five);

}  // namespace gpushare::kernels
