// Maps library codes to statuses. See library_errors.h.

#include "src/cuda/library/library_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gpushare::cuda {
namespace {

// Codes are numbers here because builds without the libraries' headers include this file. The
// libraries' ABI fixes them.
absl::StatusCode CodeOfCublas(int code) {
  switch (code) {
    case 3:  // CUBLAS_STATUS_ALLOC_FAILED
      return absl::StatusCode::kResourceExhausted;
    case 7:   // CUBLAS_STATUS_INVALID_VALUE
    case 15:  // CUBLAS_STATUS_NOT_SUPPORTED
      return absl::StatusCode::kInvalidArgument;
    case 8:  // CUBLAS_STATUS_ARCH_MISMATCH
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::StatusCode CodeOfCudnn(int code) {
  // CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED and _DEVICE_ALLOCATION_FAILED
  if (code == 4003 || code == 4004) return absl::StatusCode::kResourceExhausted;
  switch (code / 1000) {
    case 2:  // CUDNN_STATUS_BAD_PARAM
    case 3:  // CUDNN_STATUS_NOT_SUPPORTED
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status StatusOf(const char* library, absl::StatusCode status, int code, const char* text,
                      absl::string_view expression, absl::string_view file, int line) {
  const size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  return absl::Status(
      status, absl::StrCat(library, " answers ", code, " (", text == nullptr ? "no text" : text,
                           ") to ", expression, " in ", file, ":", line, "."));
}

}  // namespace

AnotherAlgorithm AnotherAlgorithmAfter(int cublas_code) {
  switch (cublas_code) {
    case 7:   // CUBLAS_STATUS_INVALID_VALUE
    case 15:  // CUBLAS_STATUS_NOT_SUPPORTED
      return AnotherAlgorithm::kYes;
    case 13:  // CUBLAS_STATUS_EXECUTION_FAILED
      return AnotherAlgorithm::kUnlessLost;
    default:
      return AnotherAlgorithm::kNo;
  }
}

absl::Status CublasStatusOf(int code, const char* text, const char* expression, const char* file,
                            int line) {
  if (code == 0) return absl::OkStatus();
  return StatusOf("cuBLASLt", CodeOfCublas(code), code, text, expression, file, line);
}

absl::Status CudnnStatusOf(int code, const char* text, const char* expression, const char* file,
                           int line) {
  if (code == 0) return absl::OkStatus();
  return StatusOf("cuDNN", CodeOfCudnn(code), code, text, expression, file, line);
}

}  // namespace gpushare::cuda
