// Is there a CUDA device at all? Asked before the first runtime call, so that a machine without a
// driver, without a GPU or with an old driver gets one clear sentence.
//
// The calls to the machine are a table, so that tests can play every kind of machine.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_H_
#define GPUSHARE_SRC_CUDA_DRIVER_H_

#include <string>

#include "absl/status/status.h"

namespace gpushare::cuda {

struct DriverCalls {
  // Opens the driver library and initialises it. The runtime would do so itself, but it cannot tell
  // a missing library from a driver that fails. Fills `problem` and returns false if it cannot.
  bool (*open_driver)(std::string* problem);
  // cudaGetDeviceCount: a cudaError_t; `count` stays as it was when it fails.
  int (*get_device_count)(int* count);
  const char* (*error_text)(int code);
};

// The calls of this machine.
const DriverCalls& SystemDriver();

// OK when device `ordinal` exists. INVALID_ARGUMENT: a negative ordinal, or one past the last.
// UNAVAILABLE: "No CUDA device ...", with the reason.
absl::Status CheckDevice(const DriverCalls& calls, int ordinal);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_H_
