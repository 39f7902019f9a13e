// fft: bound by DRAM, above as much work for the issue slots and shared memory as fits under that.
// A block transforms 1024 points in five passes of radix 4, one butterfly a thread, by Stockham's
// order; it reads from DRAM in the first pass and writes to it in the last.
//
// Values change threads through two halves of shared memory in turn, so that one barrier a pass is
// enough: whoever writes a half has passed the barrier that all its readers reached after reading.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFT_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFT_CUH_

#include "benchmarks/kernels/compute/fft.h"

namespace gpushare::kernels {
namespace fft {

__device__ __forceinline__ float2 Add(float2 a, float2 b) {
  return make_float2(a.x + b.x, a.y + b.y);
}
__device__ __forceinline__ float2 Subtract(float2 a, float2 b) {
  return make_float2(a.x - b.x, a.y - b.y);
}
__device__ __forceinline__ float2 Multiply(float2 a, float2 b) {
  return make_float2(fmaf(a.x, b.x, -(a.y * b.y)), fmaf(a.x, b.y, a.y * b.x));
}

// The forward transform of four values.
__device__ __forceinline__ void Butterfly(float2 v[4]) {
  const float2 even = Add(v[0], v[2]);
  const float2 even_difference = Subtract(v[0], v[2]);
  const float2 odd = Add(v[1], v[3]);
  const float2 odd_difference = Subtract(v[1], v[3]);
  v[0] = Add(even, odd);
  v[1] = make_float2(even_difference.x + odd_difference.y, even_difference.y - odd_difference.x);
  v[2] = Subtract(even, odd);
  v[3] = make_float2(even_difference.x - odd_difference.y, even_difference.y + odd_difference.x);
}

// Turns input r by r times the butterfly's angle, which is a quarter of a turn at most.
template <uint32_t kPass>
__device__ __forceinline__ void Turn(uint32_t t, float2 v[4]) {
  constexpr float kTurn = 6.28318530717958648F;
  const float angle = FftTurns(kPass, t) * kTurn;
  const float2 once = make_float2(__cosf(angle), __sinf(angle));
  const float2 twice = Multiply(once, once);
  v[1] = Multiply(v[1], once);
  v[2] = Multiply(v[2], twice);
  v[3] = Multiply(v[3], Multiply(once, twice));
}

struct gpushare_fft {
  using Params = FftParams;
  struct Shared {
    float2 even[kFftEvenPlaces];
    float2 odd[kFftOddPlaces];
  };
  struct State {};
  static constexpr int kThreads = kFftQuarter;
  static constexpr int kMinBlocksPerSm = 8;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint32_t t = ctx.thread();
    const uint64_t first =
        static_cast<uint64_t>(ctx.block_index() % params.ring) * params.transforms * kFftPoints + t;
    const float2* in = reinterpret_cast<const float2*>(params.in) + first;
    float2* out = reinterpret_cast<float2*>(params.out) + first;
#pragma unroll 1
    for (uint32_t i = 0; i < params.transforms; ++i) {
      float2 v[4];
#pragma unroll
      for (uint32_t r = 0; r < 4; ++r) v[r] = __ldcs(in + r * kFftQuarter);
      Butterfly(v);
      Exchange<0>(shared.even, t, v, ctx);
      Turn<1>(t, v);
      Butterfly(v);
      Exchange<1>(shared.odd, t, v, ctx);
      Turn<2>(t, v);
      Butterfly(v);
      Exchange<2>(shared.even, t, v, ctx);
      Turn<3>(t, v);
      Butterfly(v);
      Exchange<3>(shared.odd, t, v, ctx);
      Turn<4>(t, v);
      Butterfly(v);
#pragma unroll
      for (uint32_t r = 0; r < 4; ++r) __stcs(out + r * kFftQuarter, v[r]);
      in += kFftPoints;
      out += kFftPoints;
    }
  }

 private:
  // Hands the results of a pass to the threads that need them in the next. FftPlace is linear in r
  // here: neither a step of a pass nor a quarter carries into the bits that the padding counts, or
  // it is a multiple of 16.
  template <uint32_t kPass, class Ctx>
  __device__ __forceinline__ static void Exchange(float2* half, uint32_t t, float2 v[4], Ctx& ctx) {
    constexpr uint32_t kStep = FftPlace(kPass, FftStride(kPass));
    constexpr uint32_t kQuarterStep = FftPlace(kPass, kFftQuarter);
    float2* to = half + FftPlace(kPass, FftTarget(kPass, t));
#pragma unroll
    for (uint32_t r = 0; r < 4; ++r) to[r * kStep] = v[r];
    ctx.sync();
    const float2* from = half + FftPlace(kPass, t);
#pragma unroll
    for (uint32_t r = 0; r < 4; ++r) v[r] = from[r * kQuarterStep];
  }
};
}  // namespace fft

using fft::gpushare_fft;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFT_CUH_
