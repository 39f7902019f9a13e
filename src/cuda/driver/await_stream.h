// Waits for a stream with a limit, because the driver's own wait has none: a kernel of the
// application may hold every SM for ever.
//
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_AWAIT_STREAM_H_
#define GPUSHARE_SRC_CUDA_DRIVER_AWAIT_STREAM_H_

#include <chrono>

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

using Moment = std::chrono::steady_clock::time_point;

// The limit of a wait for small work of the library itself, such as a fill or an upload.
inline constexpr std::chrono::seconds kOwnWorkMax{10};

// CUDA_SUCCESS once everything on the stream has ended, CUDA_ERROR_NOT_READY at `until`, otherwise
// the error of the stream. Other threads may capture meanwhile. The stream's context is current.
CUresult AwaitStream(const DriverApi& api, CUstream stream, Moment until);

inline CUresult AwaitStream(const DriverApi& api, CUstream stream) {
  return AwaitStream(api, stream, std::chrono::steady_clock::now() + kOwnWorkMax);
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_AWAIT_STREAM_H_
