// The groups of the catalogue as one table. Each group has its own, in GROUP/table.cc.

#include "benchmarks/kernels/catalogue.h"

#include <cstring>
#include <vector>

#include "benchmarks/kernels/groups.h"

namespace gpushare::kernels {
namespace {

std::vector<CatalogueKernel> AllGroups() {
  std::vector<CatalogueKernel> all;
  for (const auto& group :
       {ComputeKernels(), MemoryKernels(), IrregularKernels(), DnnKernels(), TensorKernels()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace

const std::vector<CatalogueKernel>& Catalogue() {
  static const std::vector<CatalogueKernel> all = AllGroups();
  return all;
}

const CatalogueKernel* FindKernel(const char* name) {
  for (const CatalogueKernel& kernel : Catalogue()) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

}  // namespace gpushare::kernels
