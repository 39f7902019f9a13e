// The original grid of a kernel: one block a block task.

#ifndef GPUSHARE_KERNELS_GRID_H_
#define GPUSHARE_KERNELS_GRID_H_

#include <cstdint>

namespace gpushare::kernels {

struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_GRID_H_
