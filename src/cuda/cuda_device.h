// The entry to the CUDA device: the only header of this folder that other layers include.
//
// It is declared in every build. Built without nvcc, it answers UNAVAILABLE and says so.
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_
#define GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "src/core/device.h"

namespace gpushare::cuda {

// The device with this ordinal.
// Errors: UNAVAILABLE without a usable driver or GPU, with the reason; INVALID_ARGUMENT for an
// ordinal that the machine does not have; UNIMPLEMENTED where there is a GPU: this version runs the
// worker probe on it and cannot schedule on it yet.
absl::StatusOr<std::unique_ptr<core::Device>> MakeCudaDevice(int ordinal);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDA_DEVICE_H_
