// Parameters of the streaming kernel: out = scale * in over a buffer far larger than L2.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STREAMING_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STREAMING_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kStreamingUnroll = 4;  // 16-byte loads in flight a thread
constexpr uint32_t kStreamingFloatsPerPass = 1024;

struct StreamingParams {
  const float* in;
  float* out;
  uint32_t ring;    // block task b works on chunk b % ring
  uint32_t passes;  // a chunk is passes * 1024 floats; a multiple of kStreamingUnroll
  float scale;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STREAMING_H_
