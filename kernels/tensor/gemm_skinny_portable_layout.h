// Which bytes of a row a lane of gemm_skinny_portable loads and which products it makes of them,
// and where partial sums lie: index arithmetic alone, the same on GPU and CPU, so that a test
// proves it.
//
// mma.m16n8k16 wants of lane {g = lane / 4, t = lane % 4} the elements 2t, 2t + 1, 2t + 8 and
// 2t + 9 of a row's 16. A sum does not care which element of k is called which, if both operands
// call it the same: so lane t takes 16 contiguous bytes, elements 8t to 8t + 7 of a window of 32,
// for two products: the first four elements for the one, the other four for the next.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_PORTABLE_LAYOUT_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_PORTABLE_LAYOUT_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace gpushare::kernels::gemm_skinny_portable {

constexpr uint32_t kThreadCount = 128;
constexpr uint32_t kWarps = kThreadCount / 32;
constexpr uint32_t kColumns = 64;
constexpr uint32_t kWindow = 32;     // of k: 64 contiguous bytes of a row
constexpr uint32_t kLoadBytes = 16;  // of a lane
constexpr uint32_t kLoadElements = 8;
constexpr uint32_t kRowsMax = 32;  // of A

// A stage is half of the panel's columns in one window: four loads a lane, of rows 8 apart.
constexpr uint32_t kHalves = 2;
constexpr uint32_t kStageLoads = kColumns / kHalves / 8;
constexpr uint32_t kStages = 7;
constexpr uint32_t kWarpStageBytes = kStageLoads * 32 * kLoadBytes;
constexpr uint32_t kWarpBytes = kStages * kWarpStageBytes;

// A lane's own place for a load of a stage of its warp. Only this lane writes and reads it.
GPUSHARE_HOST_DEVICE constexpr uint32_t LoadAt(uint32_t load, uint32_t lane) {
  return (load * 32 + lane) * kLoadBytes;
}

// First element of the window that a lane loads.
GPUSHARE_HOST_DEVICE constexpr uint32_t LaneElement(uint32_t lane) {
  return lane % 4 * kLoadElements;
}

// Word of one partial sum of a warp. Rows of 68 words: the eight columns and four rows that a warp
// writes at once are in 32 banks.
constexpr uint32_t kSumRowWords = kColumns + 4;
GPUSHARE_HOST_DEVICE constexpr uint32_t SumAt(uint32_t row, uint32_t column) {
  return row * kSumRowWords + column;
}
static_assert(SumAt(kRowsMax, 0) * sizeof(float) <= kWarpBytes,
              "a warp's partial sums take the place of its stages");

}  // namespace gpushare::kernels::gemm_skinny_portable

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_PORTABLE_LAYOUT_H_
