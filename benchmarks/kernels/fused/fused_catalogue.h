// The fused kernels that this build has, the generated tables of CMakeLists.txt here and of
// kernels/, and look-ups in them. Rows name catalogue kernels; a row whose variants function says
// blocks_per_sm 0 is one that the current device, or none, can run.
//
// Plain types. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_FUSED_FUSED_CATALOGUE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_FUSED_FUSED_CATALOGUE_H_

#include <gpushare/device/fused_variants.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gpushare::kernels {

using FusedCatalogueKernel = gpushare_fused_kernel;

std::span<const FusedCatalogueKernel> FusedCatalogue();

// Finds a row by its own name; null when there is none.
const FusedCatalogueKernel* FindFused(const char* name);

struct FusedKind {
  uint32_t tensor_blocks = 1;
  uint32_t cuda_blocks = 1;
  uint32_t form = GPUSHARE_FUSED_PLAIN;
};
// Finds a row by the names of its catalogue kernels; null when there is none.
const FusedCatalogueKernel* FindFused(const char* tensor, const char* cuda, const FusedKind& kind);

// Every ratio and form of a pair, in the table's order.
std::vector<const FusedCatalogueKernel*> FusedOfPair(const char* tensor, const char* cuda);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_FUSED_FUSED_CATALOGUE_H_
