// pooling: bound by DRAM. A thread walks down its columns and keeps what the next window shares
// with this one in registers, so that each value is read once; neighbours in a row come from the
// other lanes, those of another warp from L1.

#ifndef GPUSHARE_KERNELS_DNN_POOLING_CUH_
#define GPUSHARE_KERNELS_DNN_POOLING_CUH_

#include "kernels/dnn/pooling.h"

namespace gpushare::kernels {
namespace pooling {

// How a window combines its values. The order is always the row above, the middle row, the row
// below.
struct Rule {
  bool average;
  float neutral;  // the value of padding

  __device__ __forceinline__ float Of(float a, float b) const {
    return average ? a + b : fmaxf(a, b);
  }
};

// Where a thread stands in its warp and in its rows.
struct Place {
  bool first_lane;
  bool first_group;  // of a row: padding is on its left
};

// The values of one input row under both windows of the thread. All lanes of the warp call it.
__device__ __forceinline__ float2 Across(const Rule& rule, const Place& place, float4 values,
                                         float edge) {
  float left = __shfl_up_sync(0xFFFFFFFFU, values.w, 1);
  if (place.first_lane) left = edge;
  if (place.first_group) left = rule.neutral;
  return make_float2(rule.Of(rule.Of(left, values.x), values.y),
                     rule.Of(rule.Of(values.y, values.z), values.w));
}

// The value left of the thread's where no lane has it.
__device__ __forceinline__ float Edge(const Place& place, const float* row) {
  return place.first_lane && !place.first_group ? row[-1] : 0;
}

struct gpushare_pooling {
  using Params = PoolingParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr bool kKeepsL1 = true;  // strips share a row, warps an edge

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint32_t slot = ctx.block_index() % params.ring;
    const uint32_t items = params.strips * params.groups.divisor;
#pragma unroll 1
    for (uint32_t base = 0; base < items; base += kThreads) {
      Pool(params, PoolingItemOf(params, slot, base + ctx.thread()), ctx.thread() % 32 == 0);
    }
  }

 private:
  // Warps stay whole: the same rows for all lanes.
  __device__ __forceinline__ static void Pool(const Params& params, const PoolingItem& item,
                                              bool first_lane) {
    const Rule rule = {params.average != 0, params.average != 0 ? 0.0F : -INFINITY};
    const Place place = {first_lane, item.group == 0};
    const float* in = params.in + item.in_at;
    float* out = params.out + item.out_at;
    const bool top = item.row == 0;
    float4 above = make_float4(rule.neutral, rule.neutral, rule.neutral, rule.neutral);
    float edge = rule.neutral;
    if (!top) {
      above = *reinterpret_cast<const float4*>(in - params.width);
      edge = Edge(place, in - params.width);
    }
    float2 shared = Across(rule, place, above, edge);
    float height = top ? 1.0F / 2 : 1.0F / 3;  // one over the rows of a window that lie inside
    const float width = place.first_group ? 1.0F / 2 : 1.0F / 3;
#pragma unroll 1
    for (uint32_t row = 0; row < params.rows; ++row) {
      const float4 first = *reinterpret_cast<const float4*>(in);
      const float4 second = *reinterpret_cast<const float4*>(in + params.width);
      const float first_edge = Edge(place, in);
      const float second_edge = Edge(place, in + params.width);
      const float2 middle = Across(rule, place, first, first_edge);
      const float2 below = Across(rule, place, second, second_edge);
      float2 result = make_float2(rule.Of(rule.Of(shared.x, middle.x), below.x),
                                  rule.Of(rule.Of(shared.y, middle.y), below.y));
      if (rule.average) {
        result = make_float2(result.x * (height * width), result.y * (height * (1.0F / 3)));
      }
      if (item.own) __stcs(reinterpret_cast<float2*>(out), result);
      in += 2 * params.width;
      out += params.width / 2;
      shared = below;
      height = 1.0F / 3;
    }
  }
};
}  // namespace pooling

using pooling::gpushare_pooling;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_POOLING_CUH_
