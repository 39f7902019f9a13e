// The kernel that reads memory into the L2 cache. Plain types only, so that the .cu file needs no
// Abseil.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_WARM_KERNEL_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_WARM_KERNEL_H_

#include <cstdint>

namespace gpushare::cuda {

inline constexpr unsigned int kWarmThreads = 1024;
// On an H200 16 blocks read 16 MB in 30 us beside the first nodes of a network, and leave them the
// other SMs.
inline constexpr unsigned int kWarmBlocks = 16;
inline constexpr int kSpansPerWarmNode = 128;

// The ranges that one launch reads. They are a kernel parameter, so they fit into 4 KB.
struct WarmSpans {
  uint64_t address[kSpansPerWarmNode];  // addresses and bytes are multiples of 16
  uint64_t bytes[kSpansPerWarmNode];
  int32_t count;
};

// The kernel, a CUkernel; null if this build has no code for the GPU.
void* WarmKernel();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_WARM_KERNEL_H_
