// The opt-in that a function needs for blocks of more than 48 KB of shared memory.

#ifndef GPUSHARE_SRC_CUDA_CODE_SHARED_MEMORY_H_
#define GPUSHARE_SRC_CUDA_CODE_SHARED_MEMORY_H_

#include <cuda.h>

#include <cstdint>

#include "absl/status/status.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

// Lets a block of the function have this much dynamic shared memory, beside the static memory that
// its code declares. Never lowers what the function already allows: another kernel may be launched
// with it.
absl::Status AllowSharedMemory(const DriverApi& api, CUfunction function, int32_t dynamic_bytes);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_SHARED_MEMORY_H_
