// The variants of the bodies of this folder that run on every GPU from sm_80 on.

#include <gpushare/device/variants.cuh>

#include "kernels/tensor/gemm_mma.cuh"
#include "kernels/tensor/gemm_skinny_portable.cuh"

namespace gpushare::kernels {

GPUSHARE_KERNEL(gpushare_gemm_mma);
GPUSHARE_KERNEL(gpushare_gemm_skinny_portable);

}  // namespace gpushare::kernels
