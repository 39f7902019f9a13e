// The contract suite's kernels for a GPU. See cuda_contract.h.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <gpushare/device/fused.cuh>
#include <gpushare/device/variants.cuh>

#include "tests/contract/cuda_contract.h"

namespace gpushare::contract {

// Spins for a given time, bounded by its own clock.
struct ContractSpin {
  struct Params {
    uint32_t wait_ns;
  };
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx&) {
    const uint64_t end_ns = device::GlobalTimerNs() + params.wait_ns;
    while (device::GlobalTimerNs() < end_ns) {
    }
  }
};
GPUSHARE_KERNEL(ContractSpin);

struct ContractPartner : ContractSpin {};
GPUSHARE_KERNEL(ContractPartner);
GPUSHARE_FUSED_KERNEL(ContractPair, ContractSpin, 1, ContractPartner, 2, GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(ContractDirect, ContractSpin, 1, ContractPartner, 2, GPUSHARE_FUSED_DIRECT);

namespace {

constexpr int kGraphKernels = 8;
constexpr uint32_t kGraphKernelNs = 5'000;
constexpr int kLongGraphKernels = 40;
constexpr uint32_t kLongGraphKernelNs = 50'000;

bool Load(CudaContractKernels& kernels) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return false;
  gpushare_kernel_variants variants = {};
  if (ContractSpin_variants(&variants) != 0) return false;
  kernels.original_function = variants.original_function;
  kernels.worker_function = variants.worker_function;
  kernels.slice_function = variants.slice_function;
  if (ContractPartner_variants(&variants) != 0) return false;
  kernels.partner_original_function = variants.original_function;
  kernels.partner_worker_function = variants.worker_function;
  gpushare_fused_variants pair = {};
  if (ContractPair_variants(&pair) != 0 || pair.blocks_per_sm == 0) return false;
  kernels.fused_function = pair.function;
  if (ContractDirect_variants(&pair) != 0 || pair.blocks_per_sm == 0) return false;
  kernels.direct_function = pair.function;
  kernels.pageable = std::malloc(kContractCopyBytes);
  return kernels.pageable != nullptr &&
         cudaMallocHost(&kernels.pinned, kContractCopyBytes) == cudaSuccess &&
         cudaMalloc(&kernels.device, kContractCopyBytes) == cudaSuccess;
}

}  // namespace

const CudaContractKernels* FindCudaContractKernels() {
  static CudaContractKernels kernels;
  static const bool loaded = Load(kernels);
  return loaded ? &kernels : nullptr;
}

namespace {

int CaptureSpins(void* stream, int sm_count, int kernels, uint32_t wait_ns) {
  const ContractSpin::Params params = {wait_ns};
  for (int i = 0; i < kernels; ++i) {
    ContractSpin_original<<<sm_count, ContractSpin::kThreads, 0,
                            static_cast<cudaStream_t>(stream)>>>(params);
  }
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int CaptureContractGraph(void* /*user*/, void* stream, int sm_count) {
  return CaptureSpins(stream, sm_count, kGraphKernels, kGraphKernelNs);
}

int CaptureContractLongGraph(void* /*user*/, void* stream, int sm_count) {
  return CaptureSpins(stream, sm_count, kLongGraphKernels, kLongGraphKernelNs);
}

}  // namespace gpushare::contract
