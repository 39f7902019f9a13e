// The native code behind a status: the CUresult of the driver call that failed.
//
// A device attaches it where it turns a code into a status; the flow copies it to the completion
// record (error_code). Threads: any. Allocates: a failure is not on the hot path.

#ifndef GPUSHARE_SRC_CORE_SEAMS_NATIVE_CODE_H_
#define GPUSHARE_SRC_CORE_SEAMS_NATIVE_CODE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace gpushare::core {

absl::Status WithNativeCode(absl::Status status, int32_t code);

// 0: the status came from no native call.
int32_t NativeCodeOf(const absl::Status& status);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_NATIVE_CODE_H_
