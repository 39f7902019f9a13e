// How many blocks of a kernel, or of two kernels together, an SM holds. Pure functions.
// Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_OCCUPANCY_H_
#define GPUSHARE_SRC_CALIBRATION_OCCUPANCY_H_

#include <cstdint>

#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"

namespace gpushare::models {

// M: the descriptor's number of workers, cut to what an SM of the device holds; at least 1.
int32_t WorkersPerSm(const core::KernelDesc& kernel, const core::DeviceProfile& device);

// Whether one SM holds so many workers of each of two kernels.
bool FitTogether(const core::KernelDesc& a, int64_t a_workers, const core::KernelDesc& b,
                 int64_t b_workers, const core::DeviceProfile& device);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_OCCUPANCY_H_
