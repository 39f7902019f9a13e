// Checks whether the machine has a CUDA device.
//
// Where in the flow: before the first runtime call, so that a machine without a driver, without a
// GPU or with an old driver gets one clear message. The calls into the machine are a table of
// functions, so that tests can imitate every kind of machine.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_DRIVER_H_
#define GPUSHARE_SRC_CUDA_DRIVER_DRIVER_H_

#include <string>

#include "absl/status/status.h"

namespace gpushare::cuda {

struct DriverCalls {
  // Opens and initialises the driver library. The runtime would do both, but it cannot distinguish
  // a missing library from a driver that fails. On failure returns false and sets `problem`.
  bool (*open_driver)(std::string* problem);
  // cudaGetDeviceCount; returns a cudaError_t. On failure `count` keeps its value.
  int (*get_device_count)(int* count);
  const char* (*error_text)(int code);
};

// The functions of the real machine.
const DriverCalls& SystemDriver();

// OK if device `ordinal` exists.
// Errors: INVALID_ARGUMENT for a negative ordinal or one past the last device. UNAVAILABLE if no
// device is usable, with the reason.
absl::Status CheckDevice(const DriverCalls& calls, int ordinal);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_DRIVER_H_
