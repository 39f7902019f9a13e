// Kernels that break on purpose. Plain types, so that .cc files need no nvcc. Each has one block
// and FaultParams as its parameter, and poisons the process's CUDA context for ever.

#ifndef GPUSHARE_BENCHMARKS_FAULTS_FAULT_KERNELS_H_
#define GPUSHARE_BENCHMARKS_FAULTS_FAULT_KERNELS_H_

#include <cstdint>

struct CUstream_st;

namespace gpushare::benchmarks {

struct FaultParams {
  uint64_t address = 0;  // of the write of WildWrite
};

const void* TrapSymbol();       // stops at a trap instruction
const void* WildWriteSymbol();  // writes where no memory is

// A bare launch; returns a cudaError_t.
int LaunchTrap(CUstream_st* stream);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_FAULTS_FAULT_KERNELS_H_
