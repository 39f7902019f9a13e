// Parameters of one level of a breadth-first search, pulled: every vertex that has no level yet
// looks for a neighbour in the frontier, and the first one is its parent. Lists are in ascending
// order, so that is the smallest one.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_BFS_H_
#define GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_BFS_H_

#include <cstdint>

#include "benchmarks/kernels/irregular/csr.h"

namespace gpushare::kernels {

using BfsShape = CsrShape<32, 1>;  // 1 to 32 neighbours a vertex

constexpr uint32_t kBfsLevel = 3;         // the frontier's
constexpr uint32_t kBfsUnvisited = 0xFF;  // the level of vertices that have none
constexpr uint32_t kBfsNoParent = 0xFFFFFFFFU;
constexpr uint32_t kBfsVerticesPerPass = 256;
constexpr uint32_t kBfsLooks = 4;  // neighbours read at once

// An eighth of the vertices is the frontier, three eighths were visited before, one half was not.
GPUSHARE_HOST_DEVICE inline uint32_t BfsLevelOf(uint32_t seed, uint32_t vertex) {
  const uint32_t part = Hash(seed, vertex) & 7;
  if (part >= 4) return kBfsUnvisited;
  return part == 0 ? kBfsLevel : part - 1;
}

// Neighbour k of `degree`, whose edge has this index: one of each equal part of the vertices.
GPUSHARE_HOST_DEVICE inline uint32_t BfsNeighbour(uint32_t seed, uint32_t vertices, uint32_t degree,
                                                  uint32_t k, uint32_t edge) {
  const uint32_t part = vertices / degree;
  return k * part + Hash(seed, edge) % part;
}

struct BfsParams {
  const uint32_t* begins;      // of each vertex's list, and the end of the last
  const uint32_t* neighbours;  // 16-byte aligned, whole groups of kBfsLooks
  const uint8_t* levels;
  uint32_t* out;    // level and parent of each vertex
  uint32_t passes;  // a chunk is passes * 256 vertices
  uint32_t ring;    // block task b searches chunk b % ring
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_IRREGULAR_BFS_H_
