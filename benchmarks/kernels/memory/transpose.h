// Parameters of the matrix transposition: out[x][y] = in[y][x].

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_TRANSPOSE_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_TRANSPOSE_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kTransposeTile = 32;  // rows and columns of a tile in shared memory

struct TransposeParams {
  const float* in;  // height rows of width
  float* out;       // width rows of height
  uint32_t width;   // multiples of kTransposeTile
  uint32_t height;
  uint32_t tiles;  // of a block task, below each other; height is a multiple of their rows. Block
                   // task b takes strip b, counted row by row, and wraps
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_TRANSPOSE_H_
