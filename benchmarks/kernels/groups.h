// The groups of the catalogue, one folder each, by what bounds the kernels:
//   compute    instruction pipes: special functions, multiply-adds, integers
//   memory     DRAM, with regular accesses
//   irregular  latency, divergence, conflicts
//   dnn        the pieces of deep networks that run on CUDA cores
//   tensor     Tensor cores
// A group's bodies are NAME.cuh, instantiated in its variants.cu, their parameters NAME.h, their
// workloads NAME_workload.cc, its table table.cc.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_GROUPS_H_
#define GPUSHARE_BENCHMARKS_KERNELS_GROUPS_H_

#include <vector>

#include "benchmarks/kernels/workload.h"

namespace gpushare::kernels {

std::vector<CatalogueKernel> ComputeKernels();
std::vector<CatalogueKernel> MemoryKernels();
std::vector<CatalogueKernel> IrregularKernels();
std::vector<CatalogueKernel> DnnKernels();
std::vector<CatalogueKernel> TensorKernels();

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_GROUPS_H_
