// Any bytes as a cubin: no read outside of them.

#include <cstddef>
#include <cstdint>

#include "src/cuda/code/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(gpushare::cuda::VariableOf({reinterpret_cast<const char*>(data), size}).ok());
  return 0;
}
