// Where gemm_mma keeps its tiles in shared memory, and which rows a lane names to ldmatrix and
// mma.m16n8k16: index arithmetic alone, the same on GPU and CPU, so that a test proves it.
//
// A stage holds kTileK columns of A's and of B's tile: rows of 64 bytes, which are four chunks of
// 16. Two rows share the 128 bytes that shared memory delivers in one clock. ldmatrix reads one
// chunk of eight successive rows at a time, so the chunks of a row are permuted by the row's pair:
// eight successive rows have any one chunk in eight different places of the 128 bytes.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_MMA_LAYOUT_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_MMA_LAYOUT_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace gpushare::kernels::gemm_mma {

constexpr uint32_t kTileM = 128;
constexpr uint32_t kTileN = 128;
constexpr uint32_t kTileK = 32;
constexpr uint32_t kStages = 4;
constexpr uint32_t kWarpsM = 2;  // warps of 64 x 32
constexpr uint32_t kWarpM = 64;
constexpr uint32_t kWarpN = 32;
constexpr uint32_t kMmaM = 16;
constexpr uint32_t kMmaN = 8;
constexpr uint32_t kMmaK = 16;

constexpr uint32_t kChunkBytes = 16;
constexpr uint32_t kChunkElements = 8;
constexpr uint32_t kRowChunks = kTileK / kChunkElements;
constexpr uint32_t kRowBytes = kTileK * 2;
constexpr uint32_t kOperandBytes = kTileM * kRowBytes;  // of a stage
constexpr uint32_t kStageBytes = 2 * kOperandBytes;
constexpr uint32_t kOutChunks = kTileN / kChunkElements;  // of a row of the output tile

// Byte of a chunk within its operand's part of a stage.
GPUSHARE_HOST_DEVICE constexpr uint32_t ChunkAt(uint32_t row, uint32_t chunk) {
  return row * kRowBytes + (chunk ^ ((row >> 1) % kRowChunks)) * kChunkBytes;
}

// What a lane names to ldmatrix.x4: lane l the row l % 8 of the 8 x 8 matrix l / 8. For A the four
// are {rows 0-7, rows 8-15} x {k 0-7, k 8-15}, rows first: mma's registers a0 to a3. For B two
// fragments of 8 columns each: {k 0-7, k 8-15} of columns 0-7, then of columns 8-15.
GPUSHARE_HOST_DEVICE constexpr uint32_t LaneRowA(uint32_t lane) { return lane % 16; }
GPUSHARE_HOST_DEVICE constexpr uint32_t LaneChunkA(uint32_t lane) { return lane / 16; }
GPUSHARE_HOST_DEVICE constexpr uint32_t LaneRowB(uint32_t lane) { return lane % 8 + lane / 16 * 8; }
GPUSHARE_HOST_DEVICE constexpr uint32_t LaneChunkB(uint32_t lane) { return lane / 8 % 2; }

// The second k16 of a stage lies two chunks further: this much of the address is inverted. Holds
// because the permutation only inverts bits too.
constexpr uint32_t kNextK16 = 2 * kChunkBytes;

// Byte of a chunk of the output tile, which takes the stages' place: rows of 256 bytes.
GPUSHARE_HOST_DEVICE constexpr uint32_t OutChunkAt(uint32_t row, uint32_t chunk) {
  return (row * kOutChunks + (chunk ^ row % 8)) * kChunkBytes;
}

}  // namespace gpushare::kernels::gemm_mma

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_MMA_LAYOUT_H_
