// The block task of scale and batch_norm (see affine.h): folds what its planes need into shared
// memory, then streams its chunk.

#ifndef GPUSHARE_KERNELS_DNN_AFFINE_CUH_
#define GPUSHARE_KERNELS_DNN_AFFINE_CUH_

#include "kernels/dnn/affine.h"

namespace gpushare::kernels {
namespace affine {

struct Shared {
  float2 planes[kAffinePlanesMax];  // {factor, shift}
};

__device__ __forceinline__ float4 Apply(float2 plane, float4 value) {
  return make_float4(fmaf(plane.x, value.x, plane.y), fmaf(plane.x, value.y, plane.y),
                     fmaf(plane.x, value.z, plane.y), fmaf(plane.x, value.w, plane.y));
}

// `fold(channel)`: its {factor, shift}.
template <class Fold, class Ctx>
__device__ __forceinline__ void Run(const AffineTensor& tensor, Shared& shared, Ctx& ctx,
                                    const Fold& fold) {
  const AffineChunk chunk = AffineChunkOf(tensor, ctx.block_index());
  if (ctx.thread() < chunk.planes) {
    const uint32_t channel = tensor.channels.Remainder(chunk.first_plane + ctx.thread());
    shared.planes[ctx.thread()] = fold(channel);
  }
  ctx.sync();
  // One 32-bit index instead of two pointers, which would not fit in registers beside the values.
  const uint32_t planes_begin = chunk.begin - chunk.offset;
  uint32_t at = chunk.begin + ctx.thread();
#pragma unroll 1
  for (uint32_t pass = 0; pass < tensor.passes; pass += kAffineUnroll) {
    const float4* in = reinterpret_cast<const float4*>(tensor.in) + at;
    float4 values[kAffineUnroll];
#pragma unroll
    for (uint32_t i = 0; i < kAffineUnroll; ++i) values[i] = in[i * kAffineThreads];
    float4* out = reinterpret_cast<float4*>(tensor.out) + at;
#pragma unroll
    for (uint32_t i = 0; i < kAffineUnroll; ++i) {
      const uint32_t plane_at = at - planes_begin + i * kAffineThreads;
      const float2 plane = shared.planes[tensor.plane.Quotient(plane_at)];
      __stcs(out + i * kAffineThreads, Apply(plane, values[i]));
    }
    at += kAffineUnroll * kAffineThreads;
  }
}

}  // namespace affine
}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_AFFINE_CUH_
