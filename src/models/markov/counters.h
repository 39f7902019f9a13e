// A kernel as its counters describe it, and how many of its blocks an SM holds.
//
// Kernelet takes the counters from a pre-run of a few blocks (4.4); a profiler gives the same
// numbers. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_COUNTERS_H_
#define GPUSHARE_SRC_MODELS_MARKOV_COUNTERS_H_

#include <cstdint>

#include "src/models/markov/virtual_sm.h"
#include "src/models/markov/warp_states.h"

namespace gpushare::models::markov {

struct KernelCounters {
  double instructions_per_block = 0;  // of warps, not of threads
  double memory_share = 0;            // R_m: instructions that go to global memory
  double uncoalesced_share = 0;       // of the memory instructions
  double uncoalesced_requests = 32;   // requests of one of them, 1 to 32
  int32_t warps_per_block = 1;
  int64_t registers_per_block = 0;
  int64_t shared_bytes_per_block = 0;
};

// Whether every count is finite, in its range and, where the chain divides by it, positive.
bool IsUsable(const KernelCounters& counters);

// Whether one SM holds `blocks` of `kernel` and `other_blocks` of `other` at once.
bool FitsTogether(const GpuShape& gpu, const KernelCounters& kernel, int32_t blocks,
                  const KernelCounters& other, int32_t other_blocks);

// The most blocks of `kernel` that one SM holds beside `other_blocks` of `other`; 0 if none fits.
int32_t BlocksBeside(const GpuShape& gpu, const KernelCounters& kernel, const KernelCounters& other,
                     int32_t other_blocks);

// The most blocks of `kernel` that one SM holds.
int32_t BlocksAlone(const GpuShape& gpu, const KernelCounters& kernel);

// What becomes idle and ready as one.
enum class Unit : uint8_t {
  kWarp,   // as in the paper's equations
  kBlock,  // the paper's cheap form: all warps of a block stall together
};

// `blocks` of `kernel` on one SM, as one of its schedulers sees them: it has an equal share of the
// warps.
ResidentKernel MakeResident(const GpuShape& gpu, const KernelCounters& kernel, int32_t blocks,
                            Unit unit);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_COUNTERS_H_
