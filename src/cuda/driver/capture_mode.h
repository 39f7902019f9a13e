// The capture mode of a thread: what the driver does with its calls while other threads capture.
//
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_CAPTURE_MODE_H_
#define GPUSHARE_SRC_CUDA_DRIVER_CAPTURE_MODE_H_

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

// Lets the calling thread query, allocate, free and load while another thread captures. In the
// default capture mode the driver would refuse the call, or the call would break that capture.
class ScopedRelaxedCapture {
 public:
  explicit ScopedRelaxedCapture(const DriverApi& api) : api_(api) {
    api_.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~ScopedRelaxedCapture() { api_.cuThreadExchangeStreamCaptureMode(&mode_); }
  ScopedRelaxedCapture(const ScopedRelaxedCapture&) = delete;
  ScopedRelaxedCapture& operator=(const ScopedRelaxedCapture&) = delete;

 private:
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_CAPTURE_MODE_H_
