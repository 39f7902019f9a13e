// black_scholes: bound by DRAM (20 bytes an option), with a mixed load of arithmetic and
// special-function work under it. While a warp computes one pass, the inputs of its next one are on
// their way to shared memory, which costs no registers; a warp reads only what it copied itself.

#include <cuda_pipeline_primitives.h>

#include <gpushare/device/variants.cuh>

#include "src/cuda/kernels/black_scholes.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kInputs = 3;
constexpr uint32_t kSlots = 2;
constexpr uint32_t kWarp = 32;
constexpr uint32_t kWarpOptions = 4 * kWarp;  // of a pass: 16 bytes of each input a lane
constexpr uint32_t kHalf = kWarpOptions / 2;  // two options a lane, computed together

// The normal distribution function, Abramowitz and Stegun 26.2.17 (error below 7.5e-8).
__device__ __forceinline__ float Normal(float d) {
  const float k = __fdividef(1.0F, fmaf(0.2316419F, fabsf(d), 1.0F));
  float polynomial = fmaf(1.330274429F, k, -1.821255978F);
  polynomial = fmaf(polynomial, k, 1.781477937F);
  polynomial = fmaf(polynomial, k, -0.356563782F);
  polynomial = fmaf(polynomial, k, 0.319381530F);
  const float tail = 0.39894228040143267F * __expf(-0.5F * d * d) * (polynomial * k);
  return d > 0 ? 1.0F - tail : tail;
}

// {call, put}
__device__ __forceinline__ float2 Price(float price, float strike, float years, float rate,
                                        float volatility) {
  const float inverse_root = rsqrtf(years);
  const float root = years * inverse_root;
  const float drift = fmaf(0.5F * volatility, volatility, rate) * years;
  const float d1 = __fdividef(__logf(__fdividef(price, strike)) + drift, volatility * root);
  const float d2 = fmaf(-volatility, root, d1);
  const float n1 = Normal(d1);
  const float n2 = Normal(d2);
  const float discounted = strike * __expf(-rate * years);
  return make_float2(price * n1 - discounted * n2, discounted * (1.0F - n2) - price * (1.0F - n1));
}

}  // namespace

struct gpushare_black_scholes {
  using Params = BlackScholesParams;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  struct Shared {
    float inputs[kSlots][kInputs][kOptionsPerPass];
  };
  struct State {};
  static_assert(kOptionsPerPass == 4 * kThreads, "a thread copies four options of a pass");

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    const uint32_t lane = ctx.thread() % kWarp;
    const uint32_t warp = ctx.thread() / kWarp * kWarpOptions;  // its first option in a pass
    uint64_t next = chunk * params.passes * kOptionsPerPass + warp + 4 * lane;
    float4* out = reinterpret_cast<float4*>(params.out) + (next - 4 * lane) / 2 + lane;
    Copy(params, shared.inputs[0], next, warp + 4 * lane);
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass) {
      __syncwarp();  // the slot to copy into was read by all lanes
      next += kOptionsPerPass;
      if (pass + 1 < params.passes) {
        Copy(params, shared.inputs[(pass + 1) % kSlots], next, warp + 4 * lane);
      } else {
        __pipeline_commit();
      }
      __pipeline_wait_prior(kSlots - 1);
      __syncwarp();  // what the other lanes copied
      const auto& inputs = shared.inputs[pass % kSlots];
#pragma unroll 1
      for (uint32_t half = 0; half < 2; ++half, out += kHalf / 2) {
        __stcs(out, PricePair(params, inputs, warp + half * kHalf + 2 * lane));
      }
      out += (kOptionsPerPass - kWarpOptions) / 2;
    }
  }

 private:
  __device__ __forceinline__ static void Copy(const Params& params,
                                              float (&to)[kInputs][kOptionsPerPass], uint64_t from,
                                              uint32_t at) {
    __pipeline_memcpy_async(&to[0][at], params.price + from, sizeof(float4));
    __pipeline_memcpy_async(&to[1][at], params.strike + from, sizeof(float4));
    __pipeline_memcpy_async(&to[2][at], params.years + from, sizeof(float4));
    __pipeline_commit();
  }

  __device__ __forceinline__ static float4 PricePair(
      const Params& params, const float (&inputs)[kInputs][kOptionsPerPass], uint32_t at) {
    const float2 price = *reinterpret_cast<const float2*>(&inputs[0][at]);
    const float2 strike = *reinterpret_cast<const float2*>(&inputs[1][at]);
    const float2 years = *reinterpret_cast<const float2*>(&inputs[2][at]);
    const float2 first = Price(price.x, strike.x, years.x, params.rate, params.volatility);
    const float2 second = Price(price.y, strike.y, years.y, params.rate, params.volatility);
    return make_float4(first.x, first.y, second.x, second.y);
  }
};
GPUSHARE_KERNEL(gpushare_black_scholes);

}  // namespace gpushare::kernels
