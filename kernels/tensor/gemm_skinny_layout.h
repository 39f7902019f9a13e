// Which k blocks a panel of gemm_skinny begins with, and which results a thread stores: index
// arithmetic alone, the same on GPU and CPU, so that a test proves it.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_LAYOUT_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_LAYOUT_H_

#include <cstdint>

#include "kernels/tensor/gemm_tile.h"

namespace gpushare::kernels::gemm_skinny {

constexpr uint32_t kColumns = 64;
constexpr uint32_t kRows = 32;  // of A; rows past the end are zeros and are not stored

// The step, a stage of k blocks, with which a panel begins. Panels that run at the same time read
// different parts of the activations and of the rows of weights.
GPUSHARE_TILE_FUNCTION uint32_t FirstStep(uint32_t panel, uint32_t steps) { return panel % steps; }

// wgmma's sums are C transposed: of each pair of registers {r, r + 1} a lane has two rows of C in
// one column. Lanes that differ in this bit have neighbouring columns. They exchange a sum, so that
// each has one row in two columns: a 4-byte word of C.
constexpr uint32_t kExchangedLanes = 4;
GPUSHARE_TILE_FUNCTION bool StoresSecondRow(uint32_t lane) {
  return lane / kExchangedLanes % 2 != 0;
}

// Row and first column of the word that pair `r` (even) becomes.
struct OutputWord {
  uint32_t row;
  uint32_t column;
};

GPUSHARE_TILE_FUNCTION OutputWord OutputWordOf(uint32_t warp, uint32_t lane, uint32_t r) {
  const Element first = AccumulatorElement(warp, lane, r);
  return {first.column + (StoresSecondRow(lane) ? 1U : 0U), first.row / 2 * 2};
}

}  // namespace gpushare::kernels::gemm_skinny

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_SKINNY_LAYOUT_H_
