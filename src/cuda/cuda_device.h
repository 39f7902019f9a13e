// The entry to the CUDA device: the only header of this folder that other layers include.
//
// It is declared in every build. Built without nvcc, it answers UNAVAILABLE and says so.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_
#define GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "src/core/seams/device.h"

namespace gpushare::cuda {

// The device with this ordinal. `profile` gives what the driver cannot tell: latencies, bandwidths
// and the sizes of partitions as they were calibrated; what the driver tells replaces it. Errors:
// UNAVAILABLE without a usable driver or GPU, or where this build has no code for the GPU, with the
// reason; INVALID_ARGUMENT for an ordinal that the machine does not have; INTERNAL where a first
// kernel computes something wrong.
absl::StatusOr<std::unique_ptr<core::Device>> MakeCudaDevice(int ordinal,
                                                             const core::DeviceProfile& profile);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_
