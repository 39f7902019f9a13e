// Calls the application's capture function of a graph, for devices that capture.
//
//   cuStreamBeginCapture -> CallCapture -> cuStreamEndCapture, whatever CallCapture returns
//
// Threads: the registering one.

#ifndef GPUSHARE_SRC_CORE_SEAMS_CAPTURE_CALL_H_
#define GPUSHARE_SRC_CORE_SEAMS_CAPTURE_CALL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

// Of a kernel that is a graph. INVALID_ARGUMENT: the function returned a number other than 0, or
// threw; the message says which.
absl::Status CallCapture(const KernelDesc& kernel, void* stream, int32_t sm_count);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_CAPTURE_CALL_H_
