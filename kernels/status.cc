#include "kernels/status.h"

#include <cuda_runtime_api.h>

#include <string>

namespace gpushare::kernels {

Status InvalidOption(const std::string& message) {
  Status status;
  status.code = -1;
  status.message = message;
  return status;
}

Status CudaStatus(int code, const char* step) {
  Status status;
  if (code == cudaSuccess) return status;
  status.code = code;
  status.message = std::string(step) +
                   " fails: " + cudaGetErrorString(static_cast<cudaError_t>(code)) + " (" +
                   std::to_string(code) + ").";
  return status;
}

}  // namespace gpushare::kernels
