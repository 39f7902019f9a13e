// sad: bound by integer instructions. The window of a tile is in shared memory; a warp searches one
// block: a lane 4 places across and 4 down at a time, so that what it reads serves 16 sums.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_SAD_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_SAD_CUH_

#include "benchmarks/kernels/memory/sad.h"

namespace gpushare::kernels {
namespace sad {

constexpr uint32_t kFullWarp = 0xFFFFFFFFU;
constexpr uint32_t kWarps = 8;
constexpr uint32_t kWindowWords = kSadTileWords + 8;  // the tile and 32 pixels
constexpr uint32_t kWindowRows = kSadTileRows + kSadRange - 1;
// Four rows down are 8 banks on: the 4 x 8 lanes of a warp read 32 banks.
constexpr uint32_t kWindowPitch = 26;
constexpr uint32_t kBlocksPerWarp = kSadTileBlocks / kWarps;
constexpr uint32_t kDown = 4;

struct gpushare_sad {
  using Params = SadParams;
  struct Shared {
    uint32_t window[kWindowRows * kWindowPitch];
  };
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 5;  // 16 sums in registers
  static constexpr bool kKeepsL1 = true;     // blocks beside each other share their windows' rows

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t lane = ctx.thread() % 32;
    const uint32_t warp = ctx.thread() / 32;
    const uint32_t first_tile = ctx.block_index() % params.ring * params.tiles;
#pragma unroll 1
    for (uint32_t tile = first_tile; tile < first_tile + params.tiles; ++tile) {
      const uint32_t tile_x = tile % params.across;
      const uint32_t tile_y = tile / params.across;
      if (tile > first_tile) ctx.sync();  // all threads have read the previous window
      LoadWindow(params, tile_x, tile_y, shared, ctx.thread());
      ctx.sync();
      uint32_t mine = 0;
#pragma unroll 1
      for (uint32_t i = 0; i < kBlocksPerWarp; ++i) {
        const uint32_t block = warp * kBlocksPerWarp + i;
        const uint32_t block_x = block % kSadTileWords;
        const uint32_t block_y = block / kSadTileWords * 4;
        const uint32_t pitch = params.across * kSadTileWords;
        const uint32_t* pixels = params.frame + (tile_y * kSadTileRows + block_y) * pitch +
                                 tile_x * kSadTileWords + block_x;
        const uint32_t own[4] = {pixels[0], pixels[pitch], pixels[2 * pitch], pixels[3 * pitch]};
        const uint32_t best = Search(own, shared.window + block_y * kWindowPitch + block_x, lane);
        const uint32_t found = __reduce_min_sync(kFullWarp, best);
        if (lane == i) mine = found;
      }
      if (lane < kBlocksPerWarp) {
        params.out[tile * kSadTileBlocks + warp * kBlocksPerWarp + lane] = mine;
      }
    }
  }

 private:
  __device__ static void LoadWindow(const Params& params, uint32_t tile_x, uint32_t tile_y,
                                    Shared& shared, uint32_t thread) {
    const uint32_t pitch = params.across * kSadTileWords + 2 * kSadBorderWords;
    const uint32_t* from =
        params.reference + tile_y * kSadTileRows * pitch + tile_x * kSadTileWords;
    for (uint32_t i = thread; i < kWindowRows * kWindowWords; i += kThreads) {
      const uint32_t row = i / kWindowWords;
      const uint32_t word = i % kWindowWords;
      shared.window[row * kWindowPitch + word] = from[row * pitch + word];
    }
  }

  // The lane's best of 4 columns and two times 4 rows of places.
  __device__ static uint32_t Search(const uint32_t* own, const uint32_t* window, uint32_t lane) {
    const uint32_t group = lane % 8;
    uint32_t best = 0xFFFFFFFFU;
#pragma unroll 1
    for (uint32_t y = lane / 8 * kDown; y < kSadRange; y += 4 * kDown) {
      uint32_t sums[kDown][4] = {};
      AddRows(own, window + y * kWindowPitch + group, sums);
#pragma unroll
      for (uint32_t down = 0; down < kDown; ++down) {
#pragma unroll
        for (uint32_t x = 0; x < 4; ++x) {
          const uint32_t place = (y + down) * kSadRange + group * 4 + x;
          best = min(best, sums[down][x] * 65536U + place);
        }
      }
    }
    return best;
  }

  __device__ static void AddRows(const uint32_t* own, const uint32_t* window,
                                 uint32_t (&sums)[kDown][4]) {
#pragma unroll
    for (uint32_t row = 0; row < kDown + 3; ++row) {
      const uint32_t low = window[row * kWindowPitch];
      const uint32_t high = window[row * kWindowPitch + 1];
      const uint32_t shifted[4] = {low, __funnelshift_r(low, high, 8),
                                   __funnelshift_r(low, high, 16), __funnelshift_r(low, high, 24)};
#pragma unroll
      for (uint32_t down = 0; down < kDown; ++down) {
        if (row < down || row - down >= 4) continue;
#pragma unroll
        for (uint32_t x = 0; x < 4; ++x) {
          sums[down][x] += __vsadu4(shifted[x], own[row - down]);
        }
      }
    }
  }
};
}  // namespace sad

using sad::gpushare_sad;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_SAD_CUH_
