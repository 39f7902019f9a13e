// The entry to the CUDA device: the only header of this folder that other layers include.
//
// Every build declares it. A build without nvcc returns UNAVAILABLE with that reason.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_
#define GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "src/core/seams/device.h"

namespace gpushare::cuda {

// Opens the device with this ordinal. `profile` holds calibrated values that the driver does not
// know: latencies, bandwidths, sizes of partitions. Values that the driver knows replace those of
// the profile.
//
// Errors: UNAVAILABLE without a usable driver or GPU, or if this build has no code for the GPU.
// INVALID_ARGUMENT if the machine has no such ordinal. INTERNAL if a first kernel computes a wrong
// result.
absl::StatusOr<std::unique_ptr<core::Device>> MakeCudaDevice(int ordinal,
                                                             const core::DeviceProfile& profile);

// The newest CUDA that the driver knows, as 1000 x major + 10 x minor; 0 without a driver.
int DriverVersion();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_
