// Maps the driver's codes to statuses, with the expression and its line. No other file does that.
// The status carries the code (core/seams/native_code.h), which ends in the task's completion
// record.
//
// After a sticky error the context is unusable: every later call in the process fails. Such an
// error becomes DATA_LOSS; no other code does. From Launch, DATA_LOSS says that the device is lost
// (core/seams/device.h).
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_ERRORS_H_
#define GPUSHARE_SRC_CUDA_DRIVER_ERRORS_H_

#include "absl/status/status.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

// Whether `code` leaves the context unusable.
bool IsSticky(CUresult code);

// OK for CUDA_SUCCESS. `expression` is the call as it stands in the source.
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

#endif  // GPUSHARE_SRC_CUDA_DRIVER_ERRORS_H_
