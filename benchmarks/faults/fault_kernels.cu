// See fault_kernels.h.

#include <cuda_runtime.h>

#include "benchmarks/faults/fault_kernels.h"

namespace gpushare::benchmarks {
namespace {

__global__ void Trap(FaultParams /*params*/) { __trap(); }

__global__ void WildWrite(FaultParams params) {
  *reinterpret_cast<volatile uint32_t*>(params.address) = 1;
}

}  // namespace

const void* TrapSymbol() { return reinterpret_cast<const void*>(&Trap); }
const void* WildWriteSymbol() { return reinterpret_cast<const void*>(&WildWrite); }

int LaunchTrap(CUstream_st* stream) {
  Trap<<<1, 1, 0, stream>>>(FaultParams{});
  return cudaGetLastError();
}

}  // namespace gpushare::benchmarks
