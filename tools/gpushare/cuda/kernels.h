// The tool's own device code: the GELU of a chain, and a fill of buffers with seeded values.
//
// Functions return a cudaError_t as int. Threads: any, with the device's context current.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_KERNELS_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_KERNELS_H_

#include <cstdint>

namespace gpushare::tool {

// The packed arguments of the GELU kernel: bf16 in and out.
struct GeluParams {
  const void* in;
  void* out;
  uint64_t elements;  // a multiple of 8
};

inline constexpr uint32_t kGeluThreads = 256;
inline constexpr uint32_t kGeluElementsPerBlock = 8 * kGeluThreads;

inline uint32_t GeluBlocks(uint64_t elements) {
  return static_cast<uint32_t>((elements + kGeluElementsPerBlock - 1) / kGeluElementsPerBlock);
}

int LaunchGelu(const GeluParams& params, void* stream);
// The CUfunction of GELU, for a grid of GeluBlocks blocks of kGeluThreads threads.
int GeluFunction(void** out_function);

// bf16 values uniform in [-scale, scale), the same for the same seed.
int FillUniformBf16(void* out, uint64_t elements, uint32_t seed, float scale, void* stream);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_KERNELS_H_
