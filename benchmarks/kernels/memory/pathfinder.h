// Parameters of the path finder: the cheapest way down a grid, one of the three cells above each.
//
//   cost[row][x] = wall[row][x] + min(cost[row - 1][x - 1], cost[row - 1][x], cost[row - 1][x + 1])
//
// A launch is a pyramid of `rows` rows: the tiles overlap by that many columns, compute their halo
// themselves, and need nothing of each other.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_MEMORY_PATHFINDER_H_
#define GPUSHARE_BENCHMARKS_KERNELS_MEMORY_PATHFINDER_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kPathfinderTileColumns = 1024;  // 256 threads of 4 columns
constexpr uint32_t kPathfinderHalo = 32;           // on either side; rows at most
constexpr uint32_t kPathfinderColumns = kPathfinderTileColumns - 2 * kPathfinderHalo;
// A wall beyond the field: more than any way through it costs, and 32 of them fit 32 bits.
constexpr uint32_t kPathfinderOutside = 1U << 24;
constexpr uint32_t kPathfinderWallMask = 0xFF;
constexpr uint32_t kPathfinderSourceMask = 0xFFF;

struct PathfinderParams {
  const uint32_t* source;  // costs of the row above the pyramid
  const uint32_t* walls;   // rows of `columns`
  uint32_t* out;           // costs of its last row
  uint32_t columns;        // ring * tiles * kPathfinderColumns
  uint32_t rows;           // even, kPathfinderHalo at most
  uint32_t tiles;          // of a block task, beside each other
  uint32_t ring;           // block task b computes chunk b % ring
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_MEMORY_PATHFINDER_H_
