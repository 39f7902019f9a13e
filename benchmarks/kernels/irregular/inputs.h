// The inputs of this group that are more than seeded numbers: filled on the device, and waited for.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_INPUTS_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_INPUTS_H_

#include <cstdint>

#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::kernels {

// Fills the beginnings and columns of `rows` rows (spmv.h). Columns are those of seed + 2.
Status FillSpmv(uint32_t seed, uint32_t rows, const DeviceBuffer& begins,
                const DeviceBuffer& columns);

// Fills the lists of `vertices` vertices (bfs.h) by seed and seed + 2, their levels by seed + 3.
Status FillBfs(uint32_t seed, uint32_t vertices, const DeviceBuffer& begins,
               const DeviceBuffer& neighbours, const DeviceBuffer& levels);

// Fills the first word of each node (pointer_chase.h).
Status FillChase(uint32_t seed, const DeviceBuffer& links);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_INPUTS_H_
