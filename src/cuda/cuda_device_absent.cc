// The entry to the CUDA device in a build without nvcc. See cuda_device.h.

#include "absl/status/status.h"
#include "src/cuda/cuda_device.h"

namespace gpushare::cuda {

absl::StatusOr<std::unique_ptr<core::Device>> MakeCudaDevice(
    int /*ordinal*/, const core::DeviceProfile& /*profile*/) {
  return absl::UnavailableError(
      "No CUDA device is usable: this build of gpushare has no CUDA code, because nvcc was not "
      "found "
      "when it was configured.");
}

int DriverVersion() { return 0; }

}  // namespace gpushare::cuda
