// Parameters of the stencil kernel: one sweep of a 2D 5-point stencil, zero outside the field.
//
//   out = kStencilCentre * centre + kStencilSide * (left + right + up + down)

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STENCIL_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STENCIL_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr float kStencilCentre = 0.5F;
constexpr float kStencilSide = 0.125F;
constexpr uint32_t kStencilTileWidth = 1024;  // 256 threads of 4 columns

struct StencilParams {
  const float* in;
  float* out;
  uint32_t width;  // a multiple of kStencilTileWidth
  uint32_t height;
  uint32_t rows;  // of a tile; block task b sweeps tile b, counted row by row, and wraps
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_STENCIL_H_
