// The rows of the kernel list, in the order of their indices.

#ifndef GPUSHARE_KERNELS_INTERFACE_LIST_H_
#define GPUSHARE_KERNELS_INTERFACE_LIST_H_

#include <gpushare/kernels.h>

#include <cstdint>

namespace gpushare::kernels {

struct KernelRow {
  const char* name;
  const char* summary;
  const char* params;  // the struct of its pack function
  gpushare_kernels_bound bound;
  int32_t compute_capability_min;
  int32_t compute_capability_max;                  // 0: none
  int (*variants)(gpushare_kernel_variants* out);  // 0 or a cudaError_t
};

const KernelRow* FindRow(uint32_t kernel);                       // null: there is no such index
bool FindIndex(const char* name, uint32_t* kernel);              // false: there is no such name
gpushare_kernels_status NoSuchKernel(uint32_t kernel) noexcept;  // OUT_OF_RANGE, with a sentence

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_INTERFACE_LIST_H_
