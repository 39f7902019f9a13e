// Whether the device is lost, and the error that lost it.
//
// The first sticky error loses the device for as long as the process lives (errors.h).
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_DEVICE_LOSS_H_
#define GPUSHARE_SRC_CUDA_DRIVER_DEVICE_LOSS_H_

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/seams/native_code.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

class DeviceLoss {
 public:
  bool lost() const { return code() != 0; }
  // The CUresult that lost the device, or 0.
  int code() const { return code_.load(std::memory_order_relaxed); }

  // DATA_LOSS with the code. Call it once the device is lost.
  absl::Status AsStatus() const {
    const int code = this->code();
    return core::WithNativeCode(
        core::StatusOf(
            absl::StatusCode::kDataLoss,
            [code] { return absl::StrCat("The CUDA device is lost after error ", code, "."); }),
        code);
  }

  // A driver's answer: loses the device if it is sticky and the first such one.
  void Record(CUresult answer) {
    if (IsSticky(answer)) Keep(static_cast<int>(answer));
  }
  // The same for a status of errors.h.
  void Record(const absl::Status& status) {
    if (!absl::IsDataLoss(status)) return;
    const int code = core::NativeCodeOf(status);
    Keep(code != 0 ? code : static_cast<int>(CUDA_ERROR_UNKNOWN));
  }

 private:
  void Keep(int code) {
    int none = 0;
    code_.compare_exchange_strong(none, code);
  }

  std::atomic<int> code_{0};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_DEVICE_LOSS_H_
