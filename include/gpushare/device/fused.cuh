// GPUSHARE_FUSED_KERNEL(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form): one kernel
// whose blocks hold TensorBlocks blocks of a Tensor-core kernel and CudaBlocks of a CUDA-core
// kernel, each with its own worker loop (Tacker, section V, with SMGuard's eviction and quota for
// either part).
//
//   extern "C" __global__ Name_fused(gpushare_worker_launch tensor, TensorBody::Params,
//                                    gpushare_worker_launch cuda, CudaBody::Params)
//   extern "C" int Name_variants(gpushare_fused_variants*)        0 or a cudaError_t
//
// In the form GPUSHARE_FUSED_DIRECT both headers are gpushare_direct_launch. That form reports no
// end; the device recognises it by the size of its headers.
//
// A part is the share of one kernel in the fused block. It has its own header, and so its own claim
// counter, eviction word, scratch and completion record. One part may be evicted, held to a quota
// or end while the other runs. A later launch with the same counter continues its block tasks.
// Worker i of part p in fused block k has the index k * Blocks(p) + i. The launch of part p has
// (number of fused blocks) * Blocks(p) workers, and each of them reports its end.
//
// Use it like GPUSHARE_KERNEL: once for each name, in the namespace of the bodies.

#ifndef GPUSHARE_DEVICE_FUSED_CUH_
#define GPUSHARE_DEVICE_FUSED_CUH_

#include <cuda_runtime.h>
#include <gpushare/device/fused_variants.h>
#include <gpushare/device/launch.h>

#include <cstdint>
#include <gpushare/device/fused_layout.cuh>
#include <gpushare/device/fused_parts.cuh>

namespace gpushare::device {

namespace internal {

// Sets *runs to whether the current device can run the kernel. Returns cudaSuccess, or the error of
// a query to the device.
template <class Layout>
cudaError_t DeviceRuns(bool* runs) {
  *runs = false;
  if (!Layout::kFeasible) return cudaSuccess;
  int device = 0;
  int major = 0;
  int minor = 0;
  int shared_max = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code != cudaSuccess) return code;
  code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (code != cudaSuccess) return code;
  code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (code != cudaSuccess) return code;
  code = cudaDeviceGetAttribute(&shared_max, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (code != cudaSuccess) return code;
  const bool is_sm_90 = major == 9 && minor == 0;
  *runs = (is_sm_90 || !Layout::kOnlySm90a) && Layout::kSharedBytes <= shared_max;
  return cudaSuccess;
}

template <class Layout>
void DescribeLayout(gpushare_fused_variants* out) {
  *out = {};
  out->threads_per_block = Layout::kThreads;
  out->tensor_blocks = Layout::kTensorBlocks;
  out->cuda_blocks = Layout::kCudaBlocks;
  out->tensor_params_bytes = static_cast<uint32_t>(sizeof(typename Layout::Tensor::Params));
  out->cuda_params_bytes = static_cast<uint32_t>(sizeof(typename Layout::Cuda::Params));
  out->static_shared_bytes = Layout::StaticBytes();
  out->dynamic_shared_bytes = Layout::DynamicBytes();
  out->form = Layout::kForm;
}

}  // namespace internal

// Loads the kernel into the current device. Threads: any. Returns a cudaError_t. With 0 and
// blocks_per_sm 0 this device cannot run the kernel, and only the layout's fields are filled.
template <class Layout>
int DescribeFused(const void* symbol, gpushare_fused_variants* out) {
  internal::DescribeLayout<Layout>(out);
  bool runs = false;
  cudaError_t code = internal::DeviceRuns<Layout>(&runs);
  if (code != cudaSuccess || !runs) return code;
  cudaFuncAttributes attributes = {};
  int blocks_per_sm = 0;
  code = internal::PrepareVariant(symbol, Layout::kThreads, Layout::DynamicBytes(), &attributes,
                                  &blocks_per_sm);
  if (code != cudaSuccess) return code;
  const int registers = attributes.numRegs;
  // setmaxnreg waits for ever if one part takes more registers than the other gives. So the kernel
  // must have exactly the registers that the layout computed; code for plain sm_90 has others.
  if (Layout::kMovesRegisters && registers != Layout::kRegisters) return cudaSuccess;
  // As in DescribeVariants: an SM changes its split of L1 and shared memory only when it is empty.
  code = cudaFuncSetAttribute(symbol, cudaFuncAttributePreferredSharedMemoryCarveout,
                              cudaSharedmemCarveoutMaxShared);
  if (code != cudaSuccess) return code;
  cudaFunction_t function = nullptr;
  code = cudaGetFuncBySymbol(&function, symbol);
  if (code != cudaSuccess) return code;
  out->function = function;
  out->symbol = symbol;
  out->registers = static_cast<uint32_t>(registers);
  out->tensor_registers =
      static_cast<uint32_t>(Layout::kMovesRegisters ? Layout::kTensorRegisters : registers);
  out->cuda_registers =
      static_cast<uint32_t>(Layout::kMovesRegisters ? Layout::kCudaRegisters : registers);
  out->static_shared_bytes = static_cast<uint32_t>(attributes.sharedSizeBytes);
  out->local_bytes = static_cast<uint32_t>(attributes.localSizeBytes);
  out->blocks_per_sm = static_cast<uint32_t>(blocks_per_sm);
  return 0;
}

}  // namespace gpushare::device

#define GPUSHARE_FUSED_KERNEL(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form) \
  GPUSHARE_FUSED_KERNEL_MIN(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form, 1)

// The same with at least MinBlocks fused blocks in an SM: the compiler limits registers for that.
#define GPUSHARE_FUSED_KERNEL_MIN(Name, TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form,      \
                                  MinBlocks)                                                       \
  using Name##_layout =                                                                            \
      gpushare::device::Fused<TensorBody, TensorBlocks, CudaBody, CudaBlocks, Form, MinBlocks>;    \
  extern "C" __global__ void                                                                       \
  __launch_bounds__(Name##_layout::kLaunchThreads, Name##_layout::kLaunchBlocks) Name##_fused(     \
      const __grid_constant__ gpushare::device::FusedHeader<Name##_layout::kForm>::Type tensor,    \
      const __grid_constant__ TensorBody::Params tensor_params,                                    \
      const __grid_constant__ gpushare::device::FusedHeader<Name##_layout::kForm>::Type cuda,      \
      const __grid_constant__ CudaBody::Params cuda_params) {                                      \
    gpushare::device::RunFusedKernel<Name##_layout>(                                               \
        gpushare::device::WholeHeader(tensor), tensor_params, gpushare::device::WholeHeader(cuda), \
        cuda_params);                                                                              \
  }                                                                                                \
  extern "C" int Name##_variants(gpushare_fused_variants* out) {                                   \
    return gpushare::device::DescribeFused<Name##_layout>(                                         \
        reinterpret_cast<const void*>(&Name##_fused), out);                                        \
  }                                                                                                \
  static_assert(true, "GPUSHARE_FUSED_KERNEL ends with a semicolon")

#endif  // GPUSHARE_DEVICE_FUSED_CUH_
