// Parameters of the Black-Scholes kernel: call and put prices of European options.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_BLACK_SCHOLES_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_BLACK_SCHOLES_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kOptionsPerPass = 512;  // two a thread

struct BlackScholesParams {
  const float* price;  // of the stock, today
  const float* strike;
  const float* years;  // until it expires
  float* out;          // call, put of each option
  uint32_t ring;       // block task b prices chunk b % ring
  uint32_t passes;     // a chunk is passes * 512 options
  float rate;
  float volatility;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_BLACK_SCHOLES_H_
