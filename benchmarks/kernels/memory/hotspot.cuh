// hotspot: bound by DRAM, two arrays read and one written. A block walks down its tile with three
// rows of temperatures in registers; a row of power is read where it is needed.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_HOTSPOT_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_HOTSPOT_CUH_

#include "benchmarks/kernels/memory/hotspot.h"

namespace gpushare::kernels {
namespace hotspot {

constexpr uint32_t kFullWarp = 0xFFFFFFFFU;
constexpr uint32_t kLastLane = 31;

__device__ __forceinline__ float4 Load4(const float* at) {
  return *reinterpret_cast<const float4*>(at);
}

__device__ __forceinline__ float Cell(const HotspotParams& p, float t, float left, float right,
                                      float up, float down, float power) {
  float change = p.step_power * power;
  change = fmaf(p.step_y, (up + down) - 2.0F * t, change);
  change = fmaf(p.step_x, (left + right) - 2.0F * t, change);
  return t + fmaf(p.step_z, p.ambient - t, change);
}

struct gpushare_hotspot {
  using Params = HotspotParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;
  static constexpr bool kKeepsL1 = true;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t tile = ctx.block_index();
    const uint32_t across = params.width / kHotspotTileWidth;
    const uint32_t lane = ctx.thread() % 32;
    const uint32_t x = tile % across * kHotspotTileWidth + ctx.thread() * 4;
    const uint32_t y = tile / across % (params.height / params.rows) * params.rows;
    const int edge = EdgeOffset(lane, x, params.width);
    const uint64_t width = params.width;
    uint64_t at = y * width + x;
    float4 centre = Load4(params.temperature + at);
    float4 up = y == 0 ? centre : Load4(params.temperature + at - width);
#pragma unroll 1
    for (uint32_t row = y; row < y + params.rows; ++row, at += width) {
      const bool last = row + 1 == params.height;
      const float4 down = last ? centre : Load4(params.temperature + at + width);
      const float4 power = Load4(params.power + at);
      float left = __shfl_up_sync(kFullWarp, centre.w, 1);
      float right = __shfl_down_sync(kFullWarp, centre.x, 1);
      if (lane == 0) left = params.temperature[at + edge];
      if (lane == kLastLane) right = params.temperature[at + edge];
      const float4 c = centre;
      __stcs(reinterpret_cast<float4*>(params.out + at),
             make_float4(Cell(params, c.x, left, c.y, up.x, down.x, power.x),
                         Cell(params, c.y, c.x, c.z, up.y, down.y, power.y),
                         Cell(params, c.z, c.y, c.w, up.z, down.z, power.z),
                         Cell(params, c.w, c.z, right, up.w, down.w, power.w)));
      up = centre;
      centre = down;
    }
  }

 private:
  // The offset of the outer lanes' outer neighbour from the thread's first column. At the field's
  // edge the neighbour is the cell itself.
  __device__ static int EdgeOffset(uint32_t lane, uint32_t x, uint32_t width) {
    if (lane == 0) return x == 0 ? 0 : -1;
    return x + 4 == width ? 3 : 4;
  }
};
}  // namespace hotspot

using hotspot::gpushare_hotspot;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_HOTSPOT_CUH_
