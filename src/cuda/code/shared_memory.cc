#include "src/cuda/code/shared_memory.h"

#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// CUDA's limit without the opt-in, of static and dynamic memory together.
constexpr int kDefaultBytesMax = 48 * 1024;

}  // namespace

absl::Status AllowSharedMemory(const DriverApi& api, CUfunction function, int32_t dynamic_bytes) {
  if (dynamic_bytes == 0) return absl::OkStatus();
  int static_bytes = 0;
  GPUSHARE_CU_RETURN(
      api, cuFuncGetAttribute(&static_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  if (dynamic_bytes <= kDefaultBytesMax - static_bytes) return absl::OkStatus();
  constexpr CUfunction_attribute kMost = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  int most = 0;
  GPUSHARE_CU_RETURN(api, cuFuncGetAttribute(&most, kMost, function));
  if (most >= dynamic_bytes) return absl::OkStatus();
  return GPUSHARE_CU(api, cuFuncSetAttribute(function, kMost, dynamic_bytes));
}

}  // namespace gpushare::cuda
