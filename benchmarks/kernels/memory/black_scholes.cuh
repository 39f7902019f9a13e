// black_scholes: bound by DRAM (20 bytes an option), with a mixed load of arithmetic and
// special-function work under it.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_BLACK_SCHOLES_CUH_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_BLACK_SCHOLES_CUH_

#include "benchmarks/kernels/memory/black_scholes.h"

namespace gpushare::kernels {
namespace black_scholes {

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

struct gpushare_black_scholes {
  using Params = BlackScholesParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 8;
  // Six are 0.3 % slower than eight, and sooner evicted; five are 3.9 % slower.
  static constexpr int kWorkersPerSm = 6;
  static constexpr bool kKeepsL1 = true;  // else workers lose 2 to 4 %

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t chunk = ctx.block_index() % params.ring;
    uint64_t at = chunk * params.passes * kThreads + ctx.thread();
#pragma unroll 1
    for (uint32_t pass = 0; pass < params.passes; ++pass, at += kThreads) {
      const float2 price = __ldcs(reinterpret_cast<const float2*>(params.price) + at);
      const float2 strike = __ldcs(reinterpret_cast<const float2*>(params.strike) + at);
      const float2 years = __ldcs(reinterpret_cast<const float2*>(params.years) + at);
      const float2 first = Price(price.x, strike.x, years.x, params.rate, params.volatility);
      const float2 second = Price(price.y, strike.y, years.y, params.rate, params.volatility);
      __stcs(reinterpret_cast<float4*>(params.out) + at,
             make_float4(first.x, first.y, second.x, second.y));
    }
  }
};
}  // namespace black_scholes

using black_scholes::gpushare_black_scholes;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_BLACK_SCHOLES_CUH_
