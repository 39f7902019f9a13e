// Parameters of the histogram: how often each byte value occurs in a block task's chunk.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_HISTOGRAM_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_HISTOGRAM_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kHistogramBins = 256;
constexpr uint32_t kHistogramBytesPerPass = 4096;  // 16 a thread

struct HistogramParams {
  const uint32_t* in;  // 4 bytes a word
  uint32_t* out;       // kHistogramBins counts of each chunk
  uint32_t passes;     // a chunk is passes * 4096 bytes
  uint32_t ring;       // block task b counts chunk b % ring
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_HISTOGRAM_H_
