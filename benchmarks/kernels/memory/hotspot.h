// Parameters of the thermal model: one explicit step of a chip's temperatures, with a map of its
// power. Beyond the edges the temperature is the edge's.
//
//   out = t + power * step_power + (up + down - 2 t) * step_y + (left + right - 2 t) * step_x
//           + (ambient - t) * step_z

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_HOTSPOT_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_HOTSPOT_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kHotspotTileWidth = 1024;  // 256 threads of 4 columns

struct HotspotParams {
  const float* temperature;
  const float* power;
  float* out;
  uint32_t width;  // a multiple of kHotspotTileWidth
  uint32_t height;
  uint32_t rows;  // of a tile; block task b steps tile b, counted row by row, and wraps
  float ambient;
  float step_power;  // of the time step over capacity and resistances
  float step_x;
  float step_y;
  float step_z;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_HOTSPOT_H_
