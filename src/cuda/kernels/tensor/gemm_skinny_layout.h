// Where a lane of gemm_skinny finds its 16 bytes, which share of a stage is a warp's, which column
// or row of C a fragment's index means, and where partial sums lie: index arithmetic alone, the
// same on GPU and CPU, so that a test proves it.
//
// A stage holds boxes of rows of 64 values of k, 128 bytes, in TMA's 128-byte swizzle: chunk c of
// row r is at chunk c ^ (r % 8). As in gemm_skinny_portable_layout.h, lane {g = lane / 4, t = lane
// % 4} takes the 16 bytes 8t of a window of 32, for two products. Eight lanes read at once, of two
// rows: the rows must differ in bit 2, so that their chunks are in different halves of the banks.
// So fragment index g means row RowOf(g) of each group of eight.

#ifndef GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_LAYOUT_H_
#define GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_LAYOUT_H_

#include <cstdint>

#include "src/cuda/kernels/tensor/gemm_tile.h"

namespace gpushare::kernels::gemm_skinny {

constexpr uint32_t kColumns = 64;
constexpr uint32_t kRows = 32;    // of A; rows past the end are zeros and are not stored
constexpr uint32_t kWindows = 2;  // of 32 values of k, in a row of a box
constexpr uint32_t kWords = 4;    // of a lane's 16 bytes
constexpr uint32_t kHalves = 2;   // of the columns
constexpr uint32_t kWarpColumns = kColumns / kHalves;
constexpr uint32_t kGroupWarps = kWindows * kHalves;

// What a consumer warp multiplies: a window of its group's k blocks, half of the columns.
GPUSHARE_TILE_FUNCTION uint32_t WindowOf(uint32_t warp) { return warp % kWindows; }
GPUSHARE_TILE_FUNCTION uint32_t FirstColumnOf(uint32_t warp) {
  return warp / kWindows % kHalves * kWarpColumns;
}
GPUSHARE_TILE_FUNCTION uint32_t GroupOf(uint32_t warp) { return warp / kGroupWarps; }

// The k block of a stage that is a group's `turn`th.
GPUSHARE_TILE_FUNCTION uint32_t BlockOf(uint32_t turn, uint32_t group, uint32_t groups) {
  return turn * groups + group;
}

// The stage's worth of k blocks that a panel begins with: panels that run at the same time read
// different parts of the activations and of the rows of weights.
GPUSHARE_TILE_FUNCTION uint32_t FirstStep(uint32_t panel, uint32_t steps) { return panel % steps; }

// A permutation of 0 to 7: 0 4 1 5 2 6 3 7.
GPUSHARE_TILE_FUNCTION uint32_t RowOf(uint32_t index) { return index % 2 * 4 + index / 2; }

// Byte of a lane's 16 in the first eight rows of a box; eight rows further is kSwizzleBytes.
GPUSHARE_TILE_FUNCTION uint32_t LaneByte(uint32_t window, uint32_t lane) {
  return SwizzledByte(RowOf(lane / 4), (window * 4 + lane % 4) * kWords);
}

// Row and column of C, from the first of its tile of 8 rows and 16 columns, that sum c of a lane
// belongs to.
GPUSHARE_TILE_FUNCTION uint32_t SumRow(uint32_t lane, uint32_t c) {
  return RowOf(lane % 4 * 2 + c % 2);
}
GPUSHARE_TILE_FUNCTION uint32_t SumColumn(uint32_t lane, uint32_t c) {
  return c / 2 * 8 + RowOf(lane / 4);
}

// Word of a partial sum. Rows of 72 words: the eight columns and four rows that a warp writes at
// once are in 32 banks.
constexpr uint32_t kSumRowWords = kColumns + 8;
constexpr uint32_t kPartialWords = kRows * kSumRowWords;
GPUSHARE_TILE_FUNCTION uint32_t SumAt(uint32_t row, uint32_t column) {
  return row * kSumRowWords + column;
}

// Which partial sums a warp writes: the other half of the columns is another warp's.
GPUSHARE_TILE_FUNCTION uint32_t PartialOf(uint32_t warp) {
  return GroupOf(warp) * kWindows + WindowOf(warp);
}

}  // namespace gpushare::kernels::gemm_skinny

#endif  // GPUSHARE_SRC_CUDA_KERNELS_TENSOR_GEMM_SKINNY_LAYOUT_H_
