// im2col: bound by DRAM, nine values written for each value read. A tile goes through shared
// memory: it is read along the planes' rows and written along the matrix's rows, both whole
// sectors.

#ifndef GPUSHARE_KERNELS_DNN_IM2COL_CUH_
#define GPUSHARE_KERNELS_DNN_IM2COL_CUH_

#include "kernels/dnn/im2col.h"
#include "kernels/warp.h"

namespace gpushare::kernels {
namespace im2col {

// 16 bytes of elements as the words that are stored.
__device__ __forceinline__ uint4 Pack(const uint16_t (&e)[8]) {
  return make_uint4(
      e[0] | static_cast<uint32_t>(e[1]) << 16, e[2] | static_cast<uint32_t>(e[3]) << 16,
      e[4] | static_cast<uint32_t>(e[5]) << 16, e[6] | static_cast<uint32_t>(e[7]) << 16);
}
__device__ __forceinline__ uint4 Pack(const uint32_t (&e)[4]) {
  return make_uint4(e[0], e[1], e[2], e[3]);
}

// Element: uint16_t for bf16, uint32_t for float32; its bits are copied.
template <class Element>
struct Body {
  using Params = Im2colParams;
  struct Shared {
    Element patch[kIm2colPatchPlaces];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 4;  // 64 registers, for the loads in flight

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t first = ctx.block_index() % params.ring * params.tiles;
#pragma unroll 1
    for (uint32_t i = 0; i < params.tiles; ++i) {
      const Im2colTile tile = Im2colTileOf(params.shape, first + i);
      if (i > 0) ctx.sync();  // others may still read the previous tile
      Load(params, tile, ctx.thread(), shared);
      ctx.sync();
      Store(params, tile, ctx.thread(), shared);
    }
  }

 private:
  static constexpr uint32_t kVector = 16 / sizeof(Element);
  static constexpr uint32_t kVectors = kIm2colDepth / kVector;  // of a pixel in the tile
  static constexpr uint32_t kPixelsAtOnce = kThreads / kVectors;
  static constexpr uint32_t kWarps = kThreads / kWarpThreads;
  static constexpr uint32_t kLinesAtOnce = 9;  // loads in flight a thread: half of its lines
  static_assert(kIm2colPatchColumns <= kWarpThreads, "a line is read by one warp");
  static_assert(kIm2colDepth % kVector == 0 && kVectors <= kThreads,
                "a pixel's columns are whole vectors, one a thread");

  // A warp reads line after line, a lane its column.
  __device__ __forceinline__ static void Load(const Params& params, const Im2colTile& tile,
                                              uint32_t thread, Shared& shared) {
    const Element* in = static_cast<const Element*>(params.in);
    const uint32_t column = thread % kWarpThreads;
    if (column >= kIm2colPatchColumns) return;
#pragma unroll kLinesAtOnce
    for (uint32_t line = thread / kWarpThreads; line < kIm2colPatchLines; line += kWarps) {
      const uint32_t source = Im2colSource(params.shape, tile, line, column);
      shared.patch[Im2colPatchLine(line) + column] =
          source == kIm2colOutside ? Element{0} : __ldg(in + source);
    }
  }

  // A thread writes the same vector of columns for pixel after pixel, so it finds its places in the
  // patch once.
  __device__ __forceinline__ static void Store(const Params& params, const Im2colTile& tile,
                                               uint32_t thread, const Shared& shared) {
    uint32_t column = thread % kVectors * kVector;
    // Without this the compiler computes the places once for all tiles, and spills them during the
    // loads.
    asm volatile("" : "+r"(column));
    uint32_t offsets[kVector];
#pragma unroll
    for (uint32_t i = 0; i < kVector; ++i) offsets[i] = Im2colPatchOffset(column + i);
    // Threads that are left over have no pixel.
    const uint32_t begin = thread / kVectors < kPixelsAtOnce ? thread / kVectors : kIm2colPixels;
    Element* const out = static_cast<Element*>(params.out) + column;
#pragma unroll 1
    for (uint32_t pixel = begin; pixel < kIm2colPixels; pixel += kPixelsAtOnce) {
      const uint32_t y = pixel / kIm2colColumns;
      const uint32_t x = pixel % kIm2colColumns;
      const Element* const from = shared.patch + y * kIm2colRowStride + x;
      Element elements[kVector];
#pragma unroll
      for (uint32_t i = 0; i < kVector; ++i) elements[i] = from[offsets[i]];
      const uint32_t target = Im2colTarget(params.shape, tile, y, x);
      if (target != kIm2colOutside) __stcs(reinterpret_cast<uint4*>(out + target), Pack(elements));
    }
  }
};

struct gpushare_im2col : Body<uint16_t> {};
struct gpushare_im2col_float : Body<uint32_t> {};

}  // namespace im2col

using im2col::gpushare_im2col;
using im2col::gpushare_im2col_float;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_IM2COL_CUH_
