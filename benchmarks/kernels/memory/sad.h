// Parameters of the motion search: for each 4x4 block of a frame, the place in a 32x32 window of
// the reference frame with the smallest sum of absolute differences.
//
// A tile is 64 x 16 pixels. The reference frame has a border of 16 pixels on each side.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_SAD_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_SAD_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kSadTileWords = 16;   // of 4 pixels, across
constexpr uint32_t kSadTileRows = 16;    // of pixels
constexpr uint32_t kSadTileBlocks = 64;  // of 4x4 pixels, 16 across
constexpr uint32_t kSadRange = 32;       // places in either direction, from -16
constexpr uint32_t kSadBorderWords = 4;  // on either side
constexpr uint32_t kSadBorderRows = 16;

struct SadParams {
  const uint32_t* frame;      // 4 pixels a word
  const uint32_t* reference;  // the same with its border
  // Of each block: sum << 16 | (y << 5 | x), the smallest of all places; x and y count from -16.
  uint32_t* out;
  uint32_t across;  // tiles
  uint32_t tiles;   // of a block task
  uint32_t ring;    // block task b searches chunk b % ring
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_SAD_H_
