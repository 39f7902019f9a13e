// Other rings of gemm_skinny than the catalogue's: stages and k blocks of a stage. A stage of more
// blocks has fewer barriers and reads longer pieces of a row at once; more bytes on their way leave
// less shared memory to others.

#include <gpushare/device/variants.cuh>

#include "kernels/tensor/gemm_skinny.cuh"

namespace gpushare::kernels {

struct gpushare_skinny_8_1 : gemm_skinny::Gemm<8, 1> {};
struct gpushare_skinny_16_1 : gemm_skinny::Gemm<16, 1> {};
struct gpushare_skinny_4_2 : gemm_skinny::Gemm<4, 2> {};
struct gpushare_skinny_6_2 : gemm_skinny::Gemm<6, 2> {};
struct gpushare_skinny_8_2 : gemm_skinny::Gemm<8, 2> {};
struct gpushare_skinny_2_8 : gemm_skinny::Gemm<2, 8> {};
struct gpushare_skinny_4_4 : gemm_skinny::Gemm<4, 4> {};

GPUSHARE_KERNEL(gpushare_skinny_8_1);
GPUSHARE_KERNEL(gpushare_skinny_16_1);
GPUSHARE_KERNEL(gpushare_skinny_4_2);
GPUSHARE_KERNEL(gpushare_skinny_6_2);
GPUSHARE_KERNEL(gpushare_skinny_8_2);
GPUSHARE_KERNEL(gpushare_skinny_2_8);
GPUSHARE_KERNEL(gpushare_skinny_4_4);

}  // namespace gpushare::kernels
