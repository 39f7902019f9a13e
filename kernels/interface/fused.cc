// The list of fused pairs: the generated table without the direct form, which no device registers.

#include <gpushare/device/fused_variants.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/interface/errors.h"
#include "kernels/interface/list.h"
#include "kernels/interface/structs.h"
#include "kernels/status.h"

extern "C" const gpushare_fused_kernel* gpushare_kernel_pairs_table(size_t* count);

namespace gpushare::kernels {
namespace {

// The row of the index `fused`. Null where there is none; `count` then has the number of rows.
const gpushare_fused_kernel* FindPair(uint32_t fused, uint32_t* count) {
  size_t rows = 0;
  const gpushare_fused_kernel* const table = gpushare_kernel_pairs_table(&rows);
  *count = 0;
  for (size_t i = 0; i < rows; ++i) {
    if (table[i].form == GPUSHARE_FUSED_DIRECT) continue;
    if (*count == fused) return &table[i];
    ++*count;
  }
  return nullptr;
}

gpushare_kernels_status NoSuchPair(uint32_t fused, uint32_t count) {
  return Fail(GPUSHARE_KERNELS_OUT_OF_RANGE, "There is no fused pair " + std::to_string(fused) +
                                                 ", and the list has " + std::to_string(count) +
                                                 ".");
}

gpushare_kernels_status Describe(const gpushare_fused_kernel& row,
                                 gpushare_kernels_fused_info* info) {
  if (!FindIndex(row.tensor_name, &info->tensor_kernel) ||
      !FindIndex(row.cuda_name, &info->cuda_kernel)) {
    return Fail(GPUSHARE_KERNELS_INTERNAL,
                std::string("A part of '") + row.name + "' is not in the list of kernels.");
  }
  info->tensor_blocks = static_cast<int32_t>(row.tensor_blocks);
  info->cuda_blocks = static_cast<int32_t>(row.cuda_blocks);
  info->form = static_cast<int32_t>(row.form);
  info->name = row.name;
  return GPUSHARE_KERNELS_OK;
}

}  // namespace
}  // namespace gpushare::kernels

using gpushare::kernels::FindPair;
using gpushare::kernels::Guard;

uint32_t gpushare_kernels_fused_count() noexcept {
  uint32_t count = 0;
  FindPair(UINT32_MAX, &count);
  return count;
}

gpushare_kernels_status gpushare_kernels_fused_info_get(
    uint32_t fused, gpushare_kernels_fused_info* out_info) noexcept {
  return Guard([&]() -> gpushare_kernels_status {
    uint32_t count = 0;
    const gpushare_fused_kernel* const row = FindPair(fused, &count);
    if (row == nullptr) return gpushare::kernels::NoSuchPair(fused, count);
    auto status = gpushare::kernels::CheckStruct("gpushare_kernels_fused_info", out_info);
    if (status != GPUSHARE_KERNELS_OK) return status;
    gpushare_kernels_fused_info info = GPUSHARE_KERNELS_FUSED_INFO_INIT;
    status = gpushare::kernels::Describe(*row, &info);
    if (status == GPUSHARE_KERNELS_OK) gpushare::kernels::WriteStruct(info, out_info);
    return status;
  });
}

gpushare_kernels_status gpushare_kernels_fused_variants(
    uint32_t fused, gpushare_fused_variants* out_variants) noexcept {
  return Guard([&]() -> gpushare_kernels_status {
    uint32_t count = 0;
    const gpushare_fused_kernel* const row = FindPair(fused, &count);
    if (row == nullptr) return gpushare::kernels::NoSuchPair(fused, count);
    if (out_variants == nullptr) {
      return gpushare::kernels::Fail(GPUSHARE_KERNELS_INVALID_ARGUMENT,
                                     "The pointer to the variants is null.");
    }
    gpushare_fused_variants made = {};
    const int code = row->variants(&made);
    if (code == 0) *out_variants = made;
    const std::string step = std::string("Loading '") + row->name + "'";
    return gpushare::kernels::FromStatus(gpushare::kernels::CudaStatus(code, step.c_str()));
  });
}
