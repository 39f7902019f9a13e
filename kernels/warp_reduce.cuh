// What the lanes of a warp computed, as one record. A compute-bound kernel that wrote a result for
// every few microseconds of each thread would cost a memory-bound neighbour 4 % of its speed: DRAM
// turns around for each burst of writes (docs/hardware.md).
//
// All lanes of the warp call these; every lane has the result, the same bits in every form.

#ifndef GPUSHARE_KERNELS_WARP_REDUCE_CUH_
#define GPUSHARE_KERNELS_WARP_REDUCE_CUH_

#include <cstdint>

#include "kernels/warp.h"

namespace gpushare::kernels {

__device__ __forceinline__ float WarpSum(float value) {
#pragma unroll
  for (uint32_t lane = kWarpThreads / 2; lane > 0; lane /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, lane);
  }
  return value;
}

__device__ __forceinline__ uint32_t WarpXor(uint32_t value) {
  return __reduce_xor_sync(0xFFFFFFFFU, value);
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_WARP_REDUCE_CUH_
