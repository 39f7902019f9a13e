// stencil: bound by DRAM. A block sweeps its tile row by row and keeps three rows in registers, so
// that each value is read once; neighbours in a row come from the other lanes. The next rows are on
// their way to shared memory meanwhile: each thread reads only what it copied itself, so this needs
// no barrier, and no register either.
//
// Tiles above one another are swept towards each other and away from each other in turn, so that
// both read the rows at their common edge at about the same time, once from DRAM.

#include <cuda_pipeline_primitives.h>

#include <gpushare/device/variants.cuh>

#include "src/cuda/kernels/stencil.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kFullWarp = 0xFFFFFFFFU;
constexpr uint32_t kWarp = 32;
constexpr uint32_t kLastLane = kWarp - 1;
// Three of the four slots are on their way while a thread waits for the next line: 96 KB an SM,
// several times what DRAM's latency needs, so that a worker between block tasks is not missed.
constexpr uint32_t kSlots = 4;

// Four neighbouring values of a row, and the value left (lane 0) or right (lane 31) of the warp's.
struct RowPart {
  float4 values;
  float edge;
};

__device__ __forceinline__ float Point(float centre, float left, float right, float up,
                                       float down) {
  return fmaf(kStencilSide, (left + right) + (up + down), kStencilCentre * centre);
}

__device__ __forceinline__ float4 Sweep(const RowPart& row, const float4& up, const float4& down,
                                        uint32_t lane) {
  const float4& c = row.values;
  float left = __shfl_up_sync(kFullWarp, c.w, 1);
  float right = __shfl_down_sync(kFullWarp, c.x, 1);
  if (lane == 0) left = row.edge;
  if (lane == kLastLane) right = row.edge;
  return make_float4(Point(c.x, left, c.y, up.x, down.x), Point(c.y, c.x, c.z, up.y, down.y),
                     Point(c.z, c.y, c.w, up.z, down.z), Point(c.w, c.z, right, up.w, down.w));
}

}  // namespace

struct gpushare_stencil {
  using Params = StencilParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  struct Shared {
    float4 lines[kSlots][kThreads];
    float edges[kSlots][kThreads];  // of the first and last lane of a warp
  };
  struct State {};

 private:
  // A thread's lines in the order of the sweep: 0 before the tile, 1 to rows in it, rows + 1 after.
  struct Lines {
    Shared& shared;
    const float* next;  // the next line to copy, at the thread's first column
    uint32_t next_row;
    uint32_t height;
    int32_t stride;  // floats from one line to the next
    int32_t edge;    // the edge's place from the thread's first column; 0: it copies none
    uint32_t thread;

    __device__ __forceinline__ void Copy(uint32_t line) {
      const uint32_t slot = line % kSlots;
      if (next_row < height) {  // above row 0 wraps to a row past the last
        __pipeline_memcpy_async(&shared.lines[slot][thread], next, sizeof(float4));
        if (edge != 0) {
          __pipeline_memcpy_async(&shared.edges[slot][thread], next + edge, sizeof(float));
        }
      } else {
        shared.lines[slot][thread] = make_float4(0, 0, 0, 0);
        shared.edges[slot][thread] = 0;
      }
      next += stride;
      next_row += stride > 0 ? 1 : ~0U;
    }
    // Line 0, whose neighbours in the row are not needed.
    __device__ __forceinline__ float4 Load() {
      float4 values = make_float4(0, 0, 0, 0);
      if (next_row < height) values = *reinterpret_cast<const float4*>(next);
      next += stride;
      next_row += stride > 0 ? 1 : ~0U;
      return values;
    }
    __device__ __forceinline__ RowPart Get(uint32_t line) const {
      const uint32_t slot = line % kSlots;
      return {shared.lines[slot][thread], shared.edges[slot][thread]};
    }
  };

 public:
  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t tile = ctx.block_index();
    const uint32_t across = params.width / kStencilTileWidth;
    const uint32_t tile_row = (tile / across) % (params.height / params.rows);
    const uint32_t x = tile % across * kStencilTileWidth + ctx.thread() * 4;
    const bool downwards = tile_row % 2 == 0;
    const uint32_t first = tile_row * params.rows + (downwards ? 0 : params.rows - 1);
    const int32_t stride =
        downwards ? static_cast<int32_t>(params.width) : -static_cast<int32_t>(params.width);
    float* out = params.out + static_cast<uint64_t>(first) * params.width + x;
    Lines lines = {shared,
                   params.in + (out - params.out) - stride,
                   downwards ? first - 1 : first + 1,
                   params.height,
                   stride,
                   0,
                   ctx.thread()};
    const uint32_t lane = ctx.thread() % kWarp;
    if (lane == 0 && x > 0) lines.edge = -1;
    if (lane == kLastLane && x + 4 < params.width) lines.edge = 4;
    if (lines.edge == 0) {
      for (uint32_t slot = 0; slot < kSlots; ++slot) shared.edges[slot][ctx.thread()] = 0;
    }
    float4 before = lines.Load();
    for (uint32_t line = 1; line <= kSlots; ++line) {
      if (line < params.rows + 2) lines.Copy(line);
      __pipeline_commit();
    }
    __pipeline_wait_prior(kSlots - 1);
    RowPart row = lines.Get(1);
#pragma unroll 1
    for (uint32_t i = 0; i < params.rows; ++i) {
      if (i > 0) {
        // Into the slot of line i, which was the row of the iteration before.
        if (i + kSlots < params.rows + 2) lines.Copy(i + kSlots);
        __pipeline_commit();
      }
      __pipeline_wait_prior(kSlots - 2);
      const RowPart after = lines.Get(i + 2);
      // The sum of both is the same whichever of them is above.
      __stcs(reinterpret_cast<float4*>(out), Sweep(row, before, after.values, lane));
      out += stride;
      before = row.values;
      row = after;
    }
  }
};
GPUSHARE_KERNEL(gpushare_stencil);

}  // namespace gpushare::kernels
