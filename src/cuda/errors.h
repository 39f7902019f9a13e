// The one place that turns the driver's codes into statuses, with the expression and its line.
//
// A sticky error means that the context is poisoned: every later call fails, in the whole process.
// It becomes DATA_LOSS, which the scheduler takes for "the device is lost"; no other code does.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_ERRORS_H_
#define GPUSHARE_SRC_CUDA_ERRORS_H_

#include "absl/status/status.h"
#include "src/cuda/driver_api.h"

namespace gpushare::cuda {

// Whether the context cannot be used any more after `code`.
bool IsSticky(CUresult code);

// OK for CUDA_SUCCESS. `expression` is the call as written.
absl::Status StatusOf(const DriverApi& api, CUresult code, const char* expression, const char* file,
                      int line);

// Evaluates a driver call to a status: GPUSHARE_CU(api, cuMemFree(pointer)).
#define GPUSHARE_CU(api, call) \
  ::gpushare::cuda::StatusOf((api), (api).call, #call, __FILE__, __LINE__)

#define GPUSHARE_CU_RETURN(api, call)                                                   \
  if (absl::Status gpushare_status_ = GPUSHARE_CU(api, call); !gpushare_status_.ok()) { \
    return gpushare_status_;                                                            \
  }

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_ERRORS_H_
