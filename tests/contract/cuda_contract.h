// What the contract suite needs from CUDA beyond the device seam: kernels with work, a graph, and
// memory to copy. Plain types, so that the .cu file needs no Abseil.

#ifndef GPUSHARE_TESTS_CONTRACT_CUDA_CONTRACT_H_
#define GPUSHARE_TESTS_CONTRACT_CUDA_CONTRACT_H_

#include <cstddef>

namespace gpushare::contract {

struct CudaContractKernels {
  void* original_function = nullptr;  // block tasks of 10 us, 256 threads
  void* worker_function = nullptr;
  void* slice_function = nullptr;
  void* partner_original_function = nullptr;  // of another kernel, which has no slice function
  void* partner_worker_function = nullptr;
  void* fused_function = nullptr;   // one block of the first kernel and two of the second
  void* direct_function = nullptr;  // the same pair in the form that reports no end
  void* pinned = nullptr;
  void* pageable = nullptr;
  void* device = nullptr;
};

inline constexpr size_t kContractCopyBytes = size_t{1} << 24;

// Loads them once, in the primary context of device 0. Null without a GPU.
const CudaContractKernels* FindCudaContractKernels();

// Captures eight kernels of 5 us on every SM of the place (core::CaptureFunction).
int CaptureContractGraph(void* user, void* stream, int sm_count);
// Captures 40 kernels of 50 us.
int CaptureContractLongGraph(void* user, void* stream, int sm_count);

}  // namespace gpushare::contract

#endif  // GPUSHARE_TESTS_CONTRACT_CUDA_CONTRACT_H_
