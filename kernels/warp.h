// Records of warps: the kernels that reduce their results, and their references, count in these.

#ifndef GPUSHARE_KERNELS_WARP_H_
#define GPUSHARE_KERNELS_WARP_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kWarpThreads = 32;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_WARP_H_
