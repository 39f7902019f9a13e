// Parameters of the vector addition: out = a + b.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_VECTOR_ADD_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_VECTOR_ADD_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kVectorAddFloatsPerPass = 2048;  // two 16-byte loads of each input a thread

struct VectorAddParams {
  const float* a;
  const float* b;
  float* out;
  uint32_t ring;    // block task b adds chunk b % ring
  uint32_t passes;  // a chunk is passes * 2048 floats
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_VECTOR_ADD_H_
