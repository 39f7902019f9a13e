// transpose: bound by DRAM. Tiles pass through shared memory, so that rows of the input are read
// and rows of the output are written in whole 128-byte lines.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_TRANSPOSE_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_TRANSPOSE_CUH_

#include "benchmarks/kernels/memory/transpose.h"

namespace gpushare::kernels {
namespace transpose {

struct gpushare_transpose {
  using Params = TransposeParams;
  // Two tiles, so that one barrier a tile is enough. The padding puts a column into 32 banks.
  struct Shared {
    float tile[2][kTransposeTile][kTransposeTile + 1];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t across = params.width / kTransposeTile;
    const uint32_t strip_rows = params.tiles * kTransposeTile;
    const uint32_t strip = ctx.block_index();
    const uint32_t x = strip % across * kTransposeTile;
    const uint32_t y = strip / across % (params.height / strip_rows) * strip_rows;
    const uint32_t column = ctx.thread() % kTransposeTile;
    const uint32_t row = ctx.thread() / kTransposeTile;
    const float* in = params.in + static_cast<uint64_t>(y + row) * params.width + x + column;
    float* out = params.out + static_cast<uint64_t>(x + row) * params.height + y + column;
    float values[kRowsPerThread];
    Load(in, params.width, values);
#pragma unroll 1
    for (uint32_t tile = 0; tile < params.tiles; ++tile) {
      float(*part)[kTransposeTile + 1] = shared.tile[tile % 2];
#pragma unroll
      for (uint32_t i = 0; i < kRowsPerThread; ++i) part[row + i * kRowStep][column] = values[i];
      ctx.sync();
      // The next tile is on its way while this one is written.
      in += static_cast<uint64_t>(kTransposeTile) * params.width;
      if (tile + 1 < params.tiles) Load(in, params.width, values);
#pragma unroll
      for (uint32_t i = 0; i < kRowsPerThread; ++i) {
        __stcs(out + static_cast<uint64_t>(i * kRowStep) * params.height,
               part[column][row + i * kRowStep]);
      }
      out += kTransposeTile;
    }
  }

 private:
  static constexpr uint32_t kRowStep = kThreads / kTransposeTile;
  static constexpr uint32_t kRowsPerThread = kTransposeTile / kRowStep;

  __device__ static void Load(const float* in, uint32_t width, float* values) {
#pragma unroll
    for (uint32_t i = 0; i < kRowsPerThread; ++i) {
      values[i] = in[static_cast<uint64_t>(i * kRowStep) * width];
    }
  }
};
}  // namespace transpose

using transpose::gpushare_transpose;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_TRANSPOSE_CUH_
