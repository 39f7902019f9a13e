// The kernels that the tool, the tests and the benchmarks run. workload.h makes their workloads.
//
// Threads: any.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_CATALOGUE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_CATALOGUE_H_

#include <vector>

#include "benchmarks/kernels/workload.h"

namespace gpushare::kernels {

// All kernels, those of a group (compute, memory, irregular, dnn, tensor) beside each other.
const std::vector<CatalogueKernel>& Catalogue();
const CatalogueKernel* FindKernel(const char* name);  // null when there is none

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_CATALOGUE_H_
