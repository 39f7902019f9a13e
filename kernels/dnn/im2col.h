// Parameters of im2col: the 3x3 windows (stride 1, zeros around the image) of an NCHW tensor as the
// rows of a matrix, so that a convolution becomes a GEMM.
//
// Row (n * height + y) * width + x holds the window of pixel (y, x) of image n, and column
// k = channel * 9 + 3 * r + s its value at (y + r - 1, x + s - 1). Columns are contiguous: the
// matrix is the A of C[m, n] = A[m, k] * B[n, k]^T with m the pixels of the results, n the filters,
// k = 9 * channels, and B the filters as they lie in memory, [filter][channel][r][s]. A row is 9 *
// channels elements, a multiple of 32 bytes: whole sectors, and TMA asks for 16.
//
// A tile is kIm2colRows x kIm2colColumns pixels of one image and kIm2colChannels channels, so
// kIm2colDepth columns of as many rows; it is read once, into shared memory. Tiles are numbered
// channel group first, then across, down, image. Pixels of a tile that lie outside of the image are
// left out.

#ifndef GPUSHARE_KERNELS_DNN_IM2COL_H_
#define GPUSHARE_KERNELS_DNN_IM2COL_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace gpushare::kernels {

constexpr uint32_t kIm2colSide = 3;  // of a window
constexpr uint32_t kIm2colTaps = kIm2colSide * kIm2colSide;
constexpr uint32_t kIm2colChannels = 16;
constexpr uint32_t kIm2colRows = 7;  // 7 x 28: the planes of common networks are 28, 56, 112
constexpr uint32_t kIm2colColumns = 28;
constexpr uint32_t kIm2colPixels = kIm2colRows * kIm2colColumns;
constexpr uint32_t kIm2colDepth = kIm2colChannels * kIm2colTaps;
// The patch: the tile and the border that its windows reach into.
constexpr uint32_t kIm2colPatchRows = kIm2colRows + kIm2colSide - 1;
constexpr uint32_t kIm2colPatchColumns = kIm2colColumns + kIm2colSide - 1;
constexpr uint32_t kIm2colPatchLines = kIm2colChannels * kIm2colPatchRows;
// Strides in shared memory with which the lanes of a warp, that are 8 columns of the matrix apart,
// read 2-byte values from different banks (dense ones: from 2.4 times fewer).
constexpr uint32_t kIm2colRowStride = 34;
constexpr uint32_t kIm2colPlaneStride = 324;
constexpr uint32_t kIm2colPatchPlaces = kIm2colChannels * kIm2colPlaneStride;
static_assert(kIm2colRowStride >= kIm2colPatchColumns &&
                  kIm2colPlaneStride >= kIm2colPatchRows * kIm2colRowStride,
              "rows and planes of the patch do not overlap");

constexpr uint32_t kIm2colOutside = 0xFFFFFFFF;  // no element: both tensors have fewer than 2^32

struct Im2colShape {
  uint32_t images;
  uint32_t channels;  // a multiple of kIm2colChannels
  uint32_t height;
  uint32_t width;
};

// The elements are only copied, so they go by their size: 2 bytes (bf16) or 4 (float32).
struct Im2colParams {
  const void* in;  // [images][channels][height][width]
  void* out;       // [images * height * width][channels * 9], aligned to 32 bytes
  Im2colShape shape;
  uint32_t ring;   // block task b makes the tiles of slot b % ring
  uint32_t tiles;  // of a block task; ring * tiles is at most Im2colTiles(shape)
};

// Where a tile begins.
struct Im2colTile {
  uint32_t image;
  uint32_t channel;
  uint32_t y;
  uint32_t x;
};

GPUSHARE_HOST_DEVICE inline uint32_t Im2colAcross(const Im2colShape& shape) {
  return (shape.width + kIm2colColumns - 1) / kIm2colColumns;
}
GPUSHARE_HOST_DEVICE inline uint32_t Im2colDown(const Im2colShape& shape) {
  return (shape.height + kIm2colRows - 1) / kIm2colRows;
}
GPUSHARE_HOST_DEVICE inline uint32_t Im2colTiles(const Im2colShape& shape) {
  return shape.images * (shape.channels / kIm2colChannels) * Im2colAcross(shape) *
         Im2colDown(shape);
}

GPUSHARE_HOST_DEVICE inline Im2colTile Im2colTileOf(const Im2colShape& shape, uint32_t tile) {
  Im2colTile found = {};
  const uint32_t groups = shape.channels / kIm2colChannels;
  const uint32_t across = Im2colAcross(shape);
  const uint32_t down = Im2colDown(shape);
  found.channel = tile % groups * kIm2colChannels;
  tile /= groups;
  found.x = tile % across * kIm2colColumns;
  tile /= across;
  found.y = tile % down * kIm2colRows;
  found.image = tile / down;
  return found;
}

// Where the patch holds column `k` of the tile for the pixel at the tile's beginning.
GPUSHARE_HOST_DEVICE inline uint32_t Im2colPatchOffset(uint32_t k) {
  const uint32_t channel = k / kIm2colTaps;
  const uint32_t r = k % kIm2colTaps / kIm2colSide;
  const uint32_t s = k % kIm2colSide;
  return channel * kIm2colPlaneStride + r * kIm2colRowStride + s;
}

// Where the patch holds the first value of a line of it; lines are counted [channel][row].
GPUSHARE_HOST_DEVICE inline uint32_t Im2colPatchLine(uint32_t line) {
  return line / kIm2colPatchRows * kIm2colPlaneStride + line % kIm2colPatchRows * kIm2colRowStride;
}

// The element of the input that a line of a tile's patch has in a column, or kIm2colOutside of what
// lies outside of the image.
GPUSHARE_HOST_DEVICE inline uint32_t Im2colSource(const Im2colShape& shape, const Im2colTile& tile,
                                                  uint32_t line, uint32_t column) {
  // Row and column -1 wrap to numbers past every image.
  const uint32_t y = tile.y + line % kIm2colPatchRows - 1;
  const uint32_t x = tile.x + column - 1;
  if (y >= shape.height || x >= shape.width) return kIm2colOutside;
  const uint32_t plane = tile.image * shape.channels + tile.channel + line / kIm2colPatchRows;
  return (plane * shape.height + y) * shape.width + x;
}

// The element of the output that column 0 of the tile is, of its pixel (y, x), or kIm2colOutside of
// a pixel that lies outside of the image.
GPUSHARE_HOST_DEVICE inline uint32_t Im2colTarget(const Im2colShape& shape, const Im2colTile& tile,
                                                  uint32_t y, uint32_t x) {
  y += tile.y;
  x += tile.x;
  if (y >= shape.height || x >= shape.width) return kIm2colOutside;
  const uint32_t row = (tile.image * shape.height + y) * shape.width + x;
  return (row * shape.channels + tile.channel) * kIm2colTaps;
}

// A tensor of exactly `tiles` tiles. Its images have 64 channels and 56 x 56 pixels where `tiles`
// allows it, and fewer of both where it is no multiple of their 64 tiles.
inline Im2colShape Im2colShapeFor(uint32_t tiles) {
  constexpr uint32_t kGroupsMax = 4;
  constexpr uint32_t kAcrossMax = 2;
  constexpr uint32_t kDownMax = 8;
  const auto largest = [&tiles](uint32_t most) {
    while (tiles % most != 0) most /= 2;
    tiles /= most;
    return most;
  };
  Im2colShape shape = {};
  shape.channels = largest(kGroupsMax) * kIm2colChannels;
  shape.width = largest(kAcrossMax) * kIm2colColumns;
  shape.height = largest(kDownMax) * kIm2colRows;
  shape.images = tiles;
  return shape;
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_IM2COL_H_
