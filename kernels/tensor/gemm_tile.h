// Index arithmetic of the wgmma GEMMs, for the device and for tests on the host: the order of
// tiles, the place of an element under TMA's 128-byte swizzle, wgmma's descriptor of a tile in
// shared memory, the element that each accumulator register holds.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_TILE_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_TILE_H_

#include <cstdint>

#ifdef __CUDACC__
#define GPUSHARE_TILE_FUNCTION __host__ __device__ __forceinline__ constexpr
#else
#define GPUSHARE_TILE_FUNCTION constexpr
#endif

namespace gpushare::kernels {

// A swizzled row: 64 bf16 values. The pattern repeats every 8 rows, 1024 bytes.
constexpr uint32_t kSwizzleRowBytes = 128;
constexpr uint32_t kSwizzleColumns = 64;
constexpr uint32_t kSwizzleRows = 8;
constexpr uint32_t kSwizzleBytes = kSwizzleRowBytes * kSwizzleRows;

struct TilePlace {
  uint32_t m;
  uint32_t n;
};

// Tiles go down `group` rows of tiles before they go one column on, so that those that run at the
// same time form a block of the matrix that is about square, and share their rows of A and B in L2.
GPUSHARE_TILE_FUNCTION TilePlace PlaceOfTile(uint32_t tile, uint32_t tiles_m, uint32_t tiles_n,
                                             uint32_t group) {
  const uint32_t per_group = group * tiles_n;
  const uint32_t first_m = tile / per_group * group;
  const uint32_t rows = tiles_m - first_m < group ? tiles_m - first_m : group;
  const uint32_t in_group = tile % per_group;
  return {first_m + in_group % rows, in_group / rows};
}

// Byte of 4-byte word `word` (0 to 31) of row `row`, from a 1024-byte boundary: the 16-byte chunks
// of a row are exchanged by the row's number modulo 8.
GPUSHARE_TILE_FUNCTION uint32_t SwizzledByte(uint32_t row, uint32_t word) {
  const uint32_t chunk = (word / 4) ^ (row % kSwizzleRows);
  return row * kSwizzleRowBytes + chunk * 16 + word % 4 * 4;
}

// wgmma's descriptor (PTX ISA, "Matrix descriptor") of a K-major tile with rows of 128 swizzled
// bytes: address and stride in units of 16 bytes, 1024 bytes from one group of 8 rows to the next,
// layout 1 = 128-byte swizzle. The leading offset is not used by swizzled K-major tiles.
GPUSHARE_TILE_FUNCTION uint64_t TileDescriptor(uint32_t shared_address) {
  constexpr uint64_t kLeading = 1;
  constexpr uint64_t kStride = kSwizzleBytes / 16;
  constexpr uint64_t kSwizzle128 = 1;
  return ((shared_address & 0x3FFFFU) >> 4) | (kLeading << 16) | (kStride << 32) |
         (kSwizzle128 << 62);
}

// From one step of 16 values of k to the next, inside the swizzled row: 32 bytes. The hardware
// applies the exchange to the address bits, which the start of a 1024-byte block does not touch.
constexpr uint64_t kDescriptorPerStep = 2;
constexpr uint32_t kStepsPerRow = kSwizzleColumns / 16;

// Register r of lane `lane` of warp `warp` (0 to 3) of an m64nN accumulator.
struct Element {
  uint32_t row;
  uint32_t column;
};

GPUSHARE_TILE_FUNCTION Element AccumulatorElement(uint32_t warp, uint32_t lane, uint32_t r) {
  return {warp * 16 + lane / 4 + r / 2 % 2 * 8, r / 4 * 8 + lane % 4 * 2 + r % 2};
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_TILE_H_
