#include "benchmarks/kernels/fused/fused_catalogue.h"

#include <cstddef>
#include <cstring>
#include <vector>

extern "C" {
const gpushare_fused_kernel* gpushare_fused_kernels_table(size_t* count);
const gpushare_fused_kernel* gpushare_kernel_pairs_table(size_t* count);
#ifdef GPUSHARE_FUSED_RATIO_TABLE
const gpushare_fused_kernel* gpushare_fused_ratios_table(size_t* count);
#endif
}

namespace gpushare::kernels {
namespace {

bool IsOfPair(const FusedCatalogueKernel& kernel, const char* tensor, const char* cuda) {
  return std::strcmp(kernel.tensor_name, tensor) == 0 && std::strcmp(kernel.cuda_name, cuda) == 0;
}

std::vector<FusedCatalogueKernel> AllTables() {
  std::vector<FusedCatalogueKernel> all;
  for (const auto table : {
#ifdef GPUSHARE_FUSED_RATIO_TABLE
           gpushare_fused_ratios_table,
#endif
           gpushare_fused_kernels_table,
           gpushare_kernel_pairs_table,
       }) {
    size_t count = 0;
    const FusedCatalogueKernel* const first = table(&count);
    all.insert(all.end(), first, first + count);
  }
  return all;
}

}  // namespace

std::span<const FusedCatalogueKernel> FusedCatalogue() {
  static const std::vector<FusedCatalogueKernel> all = AllTables();
  return all;
}

const FusedCatalogueKernel* FindFused(const char* name) {
  for (const FusedCatalogueKernel& kernel : FusedCatalogue()) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

const FusedCatalogueKernel* FindFused(const char* tensor, const char* cuda, const FusedKind& kind) {
  for (const FusedCatalogueKernel& kernel : FusedCatalogue()) {
    if (IsOfPair(kernel, tensor, cuda) && kernel.tensor_blocks == kind.tensor_blocks &&
        kernel.cuda_blocks == kind.cuda_blocks && kernel.form == kind.form) {
      return &kernel;
    }
  }
  return nullptr;
}

std::vector<const FusedCatalogueKernel*> FusedOfPair(const char* tensor, const char* cuda) {
  std::vector<const FusedCatalogueKernel*> all;
  for (const FusedCatalogueKernel& kernel : FusedCatalogue()) {
    if (IsOfPair(kernel, tensor, cuda)) all.push_back(&kernel);
  }
  return all;
}

}  // namespace gpushare::kernels
