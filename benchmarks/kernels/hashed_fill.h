// Seeded integers in device memory, that the CPU computes alike.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_HASHED_FILL_H_
#define GPUSHARE_BENCHMARKS_KERNELS_HASHED_FILL_H_

#include <cstdint>

#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::kernels {

// Sets word i to Hash(seed, i) & mask, and waits until all are set.
Status FillHashed(const DeviceBuffer& buffer, uint32_t seed, uint32_t mask);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_HASHED_FILL_H_
