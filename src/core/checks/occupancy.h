// How many blocks of a kernel, or of two kernels together, an SM holds. Pure functions.
// Threads: any.

#ifndef GPUSHARE_SRC_CORE_CHECKS_OCCUPANCY_H_
#define GPUSHARE_SRC_CORE_CHECKS_OCCUPANCY_H_

#include <cstdint>

#include "src/core/seams/device_profile.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

// M: the descriptor's number of workers, cut to what an SM of the device holds; at least 1.
int32_t WorkersPerSm(const KernelDesc& kernel, const DeviceProfile& device);

// Whether one SM holds so many workers of each of two kernels.
bool FitTogether(const KernelDesc& a, int64_t a_workers, const KernelDesc& b, int64_t b_workers,
                 const DeviceProfile& device);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_CHECKS_OCCUPANCY_H_
