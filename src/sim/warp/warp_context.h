// One resident warp: where it is in its program and which of its results are on the way.
//
// Threads: one at a time.

#ifndef GPUSHARE_SRC_SIM_WARP_WARP_CONTEXT_H_
#define GPUSHARE_SRC_SIM_WARP_WARP_CONTEXT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "src/sim/warp/program.h"

namespace gpushare::sim::warp {

struct WarpContext {
  const Program* program = nullptr;
  int launch = 0;
  int block_entry = 0;      // in the table of resident blocks
  int64_t block = 0;        // of the grid
  int64_t warp = 0;         // of the block
  int64_t ready_at = 0;     // cycle from which the next instruction's operands are there
  int64_t complete_at = 0;  // of everything that it issued
  uint64_t issued = 0;
  int32_t at = 0;  // next operation
  std::array<int64_t, kMaxLoopDepth> counter = {};
  std::array<int64_t, kMaxDistance + 1> complete = {};  // of the last instructions, by number

  const Op& next() const { return program->ops[static_cast<size_t>(at)]; }
  bool has_ended() const { return at == static_cast<int32_t>(program->ops.size()); }

  // The first byte of a memory access within its region.
  uint64_t OffsetOf(const Op& op) const {
    // Sums wrap; each term is a stride of at most 2^40 times a counter of at most 2^30.
    auto at_byte = static_cast<uint64_t>(op.offset) +
                   static_cast<uint64_t>(block) * static_cast<uint64_t>(op.per_block) +
                   static_cast<uint64_t>(warp) * static_cast<uint64_t>(op.per_warp);
    for (size_t depth = 0; depth < counter.size(); ++depth) {
      at_byte += static_cast<uint64_t>(counter[depth]) * static_cast<uint64_t>(op.per_loop[depth]);
    }
    return at_byte % static_cast<uint64_t>(program->regions[op.region].bytes);
  }

  // Goes behind the instruction that has issued at `cycle`, through the ends of loops.
  void Advance(int64_t cycle, int64_t completes) {
    complete[issued % complete.size()] = completes;
    complete_at = std::max(complete_at, completes);
    ++issued;
    ++at;
    while (!has_ended() && next().kind == OpKind::kLoopEnd) {
      const Op& end = next();
      int64_t& count = counter[end.depth];
      if (++count < end.count) {
        at = end.target;
      } else {
        count = 0;
        ++at;
      }
    }
    ready_at = cycle + 1;
    if (has_ended()) return;
    for (const uint8_t distance : next().after) {
      if (distance == 0 || distance > issued) continue;
      ready_at = std::max(ready_at, complete[(issued - distance) % complete.size()]);
    }
  }
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_WARP_CONTEXT_H_
