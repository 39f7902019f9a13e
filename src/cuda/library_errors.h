// The one place that turns the codes of cuBLASLt and cuDNN into statuses, with expression and line.
// What a library refuses is INVALID_ARGUMENT: the shapes are the caller's. Threads: any.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_ERRORS_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_ERRORS_H_

#include "absl/status/status.h"

namespace gpushare::cuda {

// `code` is a cublasStatus_t or cudnnStatus_t, `text` the library's own; `expression` the call as
// written. OK for 0.
absl::Status CublasStatusOf(int code, const char* text, const char* expression, const char* file,
                            int line);
absl::Status CudnnStatusOf(int code, const char* text, const char* expression, const char* file,
                           int line);

// Whether another algorithm may do what a matrix product answered `code` to with this one. An
// execution that failed is a launch that the SMs refuse (kUnlessLost), or an error that poisons the
// context, after which every algorithm fails: the driver tells them apart, the library does not.
enum class AnotherAlgorithm { kNo, kYes, kUnlessLost };
AnotherAlgorithm AnotherAlgorithmAfter(int cublas_code);

// Evaluates a call of a function table to a status: GPUSHARE_LT(api, cublasLtCreate(&handle)).
#define GPUSHARE_LT(api, call)                                                                   \
  [&] {                                                                                          \
    const auto gpushare_code = (api).call;                                                       \
    return ::gpushare::cuda::CublasStatusOf(static_cast<int>(gpushare_code),                     \
                                            (api).cublasLtGetStatusString(gpushare_code), #call, \
                                            __FILE__, __LINE__);                                 \
  }()

#define GPUSHARE_CUDNN(api, call)                                                           \
  [&] {                                                                                     \
    const auto gpushare_code = (api).call;                                                  \
    return ::gpushare::cuda::CudnnStatusOf(static_cast<int>(gpushare_code),                 \
                                           (api).cudnnGetErrorString(gpushare_code), #call, \
                                           __FILE__, __LINE__);                             \
  }()

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_ERRORS_H_
