// stencil: bound by DRAM. A block walks down its tile and keeps three rows in registers, so that
// each value is read once; neighbours in a row come from the other lanes.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STENCIL_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STENCIL_CUH_

#include "benchmarks/kernels/memory/stencil.h"

namespace gpushare::kernels {
namespace stencil {

constexpr uint32_t kFullWarp = 0xFFFFFFFFU;
constexpr uint32_t kLastLane = 31;

// Four neighbouring values of a row, and the value left (lane 0) or right (lane 31) of the warp's.
struct RowPart {
  float4 values;
  float edge;
};

struct Column {
  const float* top;  // row 0 of the thread's first column
  uint32_t width;
  uint32_t height;
  bool reads_edge;  // this lane's neighbour is in another warp, and inside the field
  int edge_offset;  // of that neighbour, from the thread's first column
};

__device__ __forceinline__ RowPart LoadRow(const Column& column, uint32_t row) {
  RowPart part = {make_float4(0, 0, 0, 0), 0};
  if (row >= column.height) return part;  // above row 0 wraps to a row past the last
  const float* at = column.top + static_cast<uint64_t>(row) * column.width;
  part.values = *reinterpret_cast<const float4*>(at);
  if (column.reads_edge) part.edge = at[column.edge_offset];
  return part;
}

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

struct gpushare_stencil {
  using Params = StencilParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  // Six are as fast as eight, and sooner evicted; five are 1.8 % slower.
  static constexpr int kWorkersPerSm = 6;
  static constexpr bool kKeepsL1 = true;  // else workers lose 2 to 4 %

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t tile = ctx.block_index();
    const uint32_t across = params.width / kStencilTileWidth;
    const uint32_t lane = ctx.thread() % 32;
    const uint32_t x = tile % across * kStencilTileWidth + ctx.thread() * 4;
    const uint32_t y = tile / across % (params.height / params.rows) * params.rows;
    const bool reads_edge = (lane == 0 && x > 0) || (lane == kLastLane && x + 4 < params.width);
    const Column column = {params.in + x, params.width, params.height, reads_edge,
                           lane == 0 ? -1 : 4};
    float4 up = LoadRow(column, y - 1).values;
    RowPart row = LoadRow(column, y);
    float* out = params.out + static_cast<uint64_t>(y) * params.width + x;
    // 64 warps an SM with one row each in flight are enough for DRAM's latency; a row ahead would
    // cost registers that 8 blocks an SM do not have.
#pragma unroll 1
    for (uint32_t i = 0; i < params.rows; ++i) {
      const RowPart below = LoadRow(column, y + i + 1);
      __stcs(reinterpret_cast<float4*>(out), Sweep(row, up, below.values, lane));
      out += params.width;
      up = row.values;
      row = below;
    }
  }
};
}  // namespace stencil

using stencil::gpushare_stencil;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STENCIL_CUH_
