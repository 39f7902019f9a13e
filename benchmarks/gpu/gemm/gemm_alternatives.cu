// The alternatives' variants. 'alone': no producer, a consumer thread loads. 'small': tiles of
// 128 x 128. 'two': two workers an SM. 'stores': a stage less for more store buffers.

#include <gpushare/device/variants.cuh>

#include "kernels/tensor/gemm_skinny.cuh"
#include "kernels/tensor/gemm_wgmma.cuh"

namespace gpushare::kernels {

using gemm_wgmma::Gemm;
using gemm_wgmma::Loads;

struct gpushare_wgmma_alone : Gemm<2, 256, 4, Loads::kByConsumer> {};
struct gpushare_wgmma_stores : Gemm<2, 256, 3, Loads::kByProducer, 4> {};
struct gpushare_wgmma_small : Gemm<2, 128, 6> {};
struct gpushare_wgmma_small_alone : Gemm<2, 128, 6, Loads::kByConsumer> {};
struct gpushare_wgmma_two : Gemm<2, 128, 2, Loads::kByConsumer> {
  static constexpr int kMinBlocksPerSm = 2;
};
struct gpushare_roomy_alone : Gemm<2, 256, 3, Loads::kByConsumer, 1> {
  static constexpr int kWorkersPerSm = 1;
};

GPUSHARE_KERNEL(gpushare_wgmma_alone);
GPUSHARE_KERNEL(gpushare_wgmma_stores);
GPUSHARE_KERNEL(gpushare_wgmma_small);
GPUSHARE_KERNEL(gpushare_wgmma_small_alone);
GPUSHARE_KERNEL(gpushare_wgmma_two);

// As gpushare_gemm_roomy's (wgmma_variants.cu): 160 registers leave 24 K of an SM.
extern "C" __global__ void __maxnreg__(160)
    gpushare_roomy_alone_original(const __grid_constant__ gpushare_roomy_alone::Params params) {
  gpushare::device::RunOriginalKernel<gpushare_roomy_alone>(params);
}

extern "C" __global__ void __maxnreg__(160)
    gpushare_roomy_alone_workers(const __grid_constant__ gpushare_worker_launch launch,
                                 const __grid_constant__ gpushare_roomy_alone::Params params) {
  gpushare::device::RunWorkerKernel<gpushare_roomy_alone>(launch, params);
}

extern "C" __global__ void __maxnreg__(160)
    gpushare_roomy_alone_slice(const __grid_constant__ gpushare_worker_launch launch,
                               const __grid_constant__ gpushare_roomy_alone::Params params) {
  gpushare::device::RunSliceKernel<gpushare_roomy_alone>(launch, params);
}

extern "C" int gpushare_roomy_alone_variants(gpushare_kernel_variants* out) {
  return gpushare::device::DescribeVariants<gpushare_roomy_alone>(
      reinterpret_cast<const void*>(&gpushare_roomy_alone_original),
      reinterpret_cast<const void*>(&gpushare_roomy_alone_workers),
      reinterpret_cast<const void*>(&gpushare_roomy_alone_slice), out);
}

// Other rings of gemm_skinny than the catalogue's: stages and k blocks of a stage. A stage of more
// blocks has fewer barriers and reads longer pieces of a row at once; more bytes on their way leave
// less shared memory to others.
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
