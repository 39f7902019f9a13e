// Maps driver codes to statuses. See errors.h.

#include "src/cuda/driver/errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/exhaustion.h"
#include "src/core/seams/native_code.h"

namespace gpushare::cuda {
namespace {

absl::StatusCode CodeOf(CUresult code) {
  if (IsSticky(code)) return absl::StatusCode::kDataLoss;
  switch (code) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION:
    case CUDA_ERROR_INVALID_RESOURCE_TYPE:
      return absl::StatusCode::kInvalidArgument;
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return absl::StatusCode::kUnimplemented;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_NOT_PERMITTED:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::string_view FileName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

bool IsSticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return true;
    default:
      return false;
  }
}

absl::Status StatusOf(const DriverApi& api, CUresult code, const char* expression, const char* file,
                      int line) {
  if (code == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (api.cuGetErrorString(code, &text) != CUDA_SUCCESS || text == nullptr) text = "no text";
  // Without memory for the message the code still says whether the device is lost.
  return core::WithNativeCode(core::StatusOf(CodeOf(code),
                                             [&] {
                                               return absl::StrCat(
                                                   "CUDA answers ", static_cast<int>(code), " (",
                                                   name, ": ", text, ") to ", expression, " in ",
                                                   FileName(file), ":", line, ".");
                                             }),
                              static_cast<int32_t>(code));
}

}  // namespace gpushare::cuda
