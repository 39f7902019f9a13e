// The variants of the GEMMs for sm_90a alone, and whether this program has machine code of them for
// the current device: what is compiled for other GPUs only stops with a message.

#include <gpushare/device/variants.cuh>

#include "kernels/tensor/gemm_skinny.cuh"
#include "kernels/tensor/gemm_wgmma.cuh"

namespace gpushare::kernels {

GPUSHARE_KERNEL(gpushare_gemm_skinny);
GPUSHARE_KERNEL(gpushare_gemm_skinny_compact);
GPUSHARE_KERNEL(gpushare_gemm_wgmma);

// As GPUSHARE_KERNEL, with a bound on registers instead of one on threads: left alone the compiler
// takes 107, and an SM would have 19 K left instead of 28 K.
extern "C" __global__ void __maxnreg__(kGemmRoomyRegisters)
    gpushare_gemm_roomy_original(const __grid_constant__ gpushare_gemm_roomy::Params params) {
  gpushare::device::RunOriginalKernel<gpushare_gemm_roomy>(params);
}

extern "C" __global__ void __maxnreg__(kGemmRoomyRegisters)
    gpushare_gemm_roomy_workers(const __grid_constant__ gpushare_worker_launch launch,
                                const __grid_constant__ gpushare_gemm_roomy::Params params) {
  gpushare::device::RunWorkerKernel<gpushare_gemm_roomy>(launch, params);
}

extern "C" __global__ void __maxnreg__(kGemmRoomyRegisters)
    gpushare_gemm_roomy_slice(const __grid_constant__ gpushare_worker_launch launch,
                              const __grid_constant__ gpushare_gemm_roomy::Params params) {
  gpushare::device::RunSliceKernel<gpushare_gemm_roomy>(launch, params);
}

extern "C" int gpushare_gemm_roomy_variants(gpushare_kernel_variants* out) {
  return gpushare::device::DescribeVariants<gpushare_gemm_roomy>(
      reinterpret_cast<const void*>(&gpushare_gemm_roomy_original),
      reinterpret_cast<const void*>(&gpushare_gemm_roomy_workers),
      reinterpret_cast<const void*>(&gpushare_gemm_roomy_slice), out);
}

namespace {

constexpr int kThreadsWithWgmma = 64;
constexpr int kThreadsWithout = 32;

// Never launched: its launch bound shows which architecture's code the device would run.
__global__ void __launch_bounds__(GPUSHARE_WGMMA != 0 ? kThreadsWithWgmma : kThreadsWithout)
    WgmmaProbe() {}

}  // namespace

// 0, cudaErrorNoKernelImageForDevice, or another cudaError_t.
extern "C" int gpushare_wgmma_missing() {
  cudaFuncAttributes attributes = {};
  const cudaError_t code =
      cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&WgmmaProbe));
  if (code != cudaSuccess) return code;
  return attributes.maxThreadsPerBlock == kThreadsWithWgmma ? cudaSuccess
                                                            : cudaErrorNoKernelImageForDevice;
}

}  // namespace gpushare::kernels
