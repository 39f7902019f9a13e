// Maps the codes of cuBLASLt and cuDNN to statuses, with the expression and its line. No other file
// does. A refusal becomes INVALID_ARGUMENT, because the caller chose the shapes.
//
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_ERRORS_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_ERRORS_H_

#include "absl/status/status.h"

namespace gpushare::cuda {

// OK for 0. `code` is a cublasStatus_t or cudnnStatus_t, `text` the library's text for it,
// `expression` the call as it stands in the source.
absl::Status CublasStatusOf(int code, const char* text, const char* expression, const char* file,
                            int line);
absl::Status CudnnStatusOf(int code, const char* text, const char* expression, const char* file,
                           int line);

// Whether another algorithm may run a product after one answered `code`. A failed execution has two
// possible causes: the SMs refused the launch, and another algorithm may run (kUnlessLost); or the
// context is unusable, and none will. The library does not distinguish them; the driver does.
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

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_ERRORS_H_
