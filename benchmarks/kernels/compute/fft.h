// Parameters of fft: batched complex transforms of 1024 points, X[k] = sum x[n] exp(-2 pi i n k /
// N).

#ifndef GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFT_H_
#define GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFT_H_

#include <cstdint>

#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

struct FftParams {
  const float* in;  // complex numbers, transform after transform
  float* out;
  uint32_t ring;        // block task b computes slot b % ring
  uint32_t transforms;  // of a block task
};

constexpr uint32_t kFftPoints = 1024;
constexpr uint32_t kFftPasses = 5;  // of radix 4
constexpr uint32_t kFftQuarter = kFftPoints / 4;

// Stockham's passes: butterfly t of pass p reads t, t + 256, t + 512, t + 768, turns input r by
// r * FftTurns(p, t), and writes FftTarget(p, t) + r * FftStride(p). The order of the results is
// the natural one.
GPUSHARE_HOST_DEVICE constexpr uint32_t FftStride(uint32_t pass) { return 1U << (2 * pass); }
GPUSHARE_HOST_DEVICE constexpr uint32_t FftTarget(uint32_t pass, uint32_t t) {
  return t / FftStride(pass) * FftStride(pass) * 4 + t % FftStride(pass);
}
// The angle in turns. It is negative, because the transform is the forward one.
GPUSHARE_HOST_DEVICE constexpr float FftTurns(uint32_t pass, uint32_t t) {
  return -static_cast<float>(t % FftStride(pass)) / static_cast<float>(4 * FftStride(pass));
}

// Where element i lies in shared memory between pass 0, 1, 2 or 3 and the next: a padding that puts
// what 16 lanes write in one access, 4 apart or in groups of 4, into 16 different pairs of banks.
GPUSHARE_HOST_DEVICE constexpr uint32_t FftPlace(uint32_t pass, uint32_t i) {
  if (pass == 0) return i + i / 16;
  if (pass == 1) return i + i / 16 * 4;
  return i;
}
constexpr uint32_t kFftEvenPlaces = kFftPoints + kFftPoints / 16;     // after pass 0 and 2
constexpr uint32_t kFftOddPlaces = kFftPoints + kFftPoints / 16 * 4;  // after pass 1 and 3

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_COMPUTE_FFT_H_
