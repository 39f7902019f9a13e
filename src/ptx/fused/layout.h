// The layout of a fused block: threads, barriers, shared memory and registers of its two parts, and
// which ratios of the parts fit.
//
// Where in the flow: what each part needs -> layout -> the writer of a fused twin. Numbers alone.
//
// Threads of the Tensor part come first. A part's copies are `stride` threads apart, and each has
// barriers and shared memory of its own. A part that
// uses wgmma starts at a warpgroup, and with setmaxnreg both parts are whole warpgroups.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_FUSED_LAYOUT_H_
#define GPUSHARE_SRC_PTX_FUSED_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "src/ptx/base/refusal.h"

namespace gpushare::ptx {

// What an SM and a block of it have. The defaults are those of an H100 or H200: CUDA C++
// Programming Guide, compute capability 9.0.
struct SmLimits {
  uint32_t registers = 65536;
  uint32_t register_step = 8;  // of a thread: warps get 256 registers at a time
  uint32_t registers_thread_max = 255;
  // ptxas 13.0 refuses wgmma in a kernel that it may give 56, and asks for 58.
  uint32_t registers_capped_min = 64;
  uint32_t register_threads_step = 128;  // a block's warps are counted in fours, one a sub-core
  uint32_t shared_bytes = 228 * 1024;
  uint32_t block_shared_bytes = 227 * 1024;
  uint32_t reserved_shared_bytes = 1024;  // of each block, by CUDA
  uint32_t threads = 2048;
  uint32_t block_threads = 1024;
  uint32_t blocks = 32;
};

// What one block of a kernel needs.
struct PartNeeds {
  uint32_t threads = 0;       // whole warps
  bool warpgroups = false;    // uses wgmma
  uint32_t barriers = 1;      // named barriers, that of the worker loop included
  uint32_t shared_bytes = 0;  // with the worker's words
  uint32_t shared_align = 32;
  bool dynamic_shared = false;  // part of it is dynamic
  // Of a thread of the worker twin; 0: not known. Moved registers need it.
  uint32_t registers = 0;
};

struct PartLayout {
  uint32_t copies = 1;
  uint32_t threads = 0;  // of a copy
  uint32_t first_thread = 0;
  uint32_t stride = 0;          // threads from a copy to the next
  uint32_t threads_in_all = 0;  // up to the next part, unused ones included
  uint32_t first_barrier = 0;
  uint32_t barriers = 0;       // of a copy
  uint32_t shared_begin = 0;   // bytes of the block's shared memory
  uint32_t shared_stride = 0;  // bytes from a copy to the next
  uint32_t registers = 0;      // of a thread after setmaxnreg; 0: no register moves
};

struct FusedLayout {
  PartLayout tensor;
  PartLayout cuda;
  uint32_t threads = 0;
  uint32_t barriers = 0;
  uint32_t shared_bytes = 0;
  uint32_t shared_align = 0;
  bool dynamic_shared = false;  // the launch gives the shared memory; else it is static
  uint32_t registers = 0;       // of a thread at launch; 0: the assembler decides
};

// What is asked for beside the two kernels.
struct LayoutChoices {
  uint32_t tensor_copies = 1;  // blocks of each kernel in a fused block
  uint32_t cuda_copies = 1;
  bool move_registers = false;  // setmaxnreg: the Tensor part takes what the other gives
  uint32_t blocks_per_sm = 1;   // with move_registers: how many fused blocks an SM shall hold
};

// Refuses more registers than a thread has. 0, not known, is accepted.
Refusal CheckRegisters(uint32_t registers, const SmLimits& limits = {});

// Refuses what does not fit in a block, with the figure and the limit.
Refusal LayOut(const PartNeeds& tensor, const PartNeeds& cuda, const LayoutChoices& choices,
               const SmLimits& limits, FusedLayout& layout);

// A ratio that fits.
struct FusedRatio {
  uint32_t tensor_copies = 1;
  uint32_t cuda_copies = 1;
  uint32_t threads = 0;
  uint32_t barriers = 0;
  uint32_t shared_bytes = 0;
  // Of a thread: the larger part's, or what the SM has for each where that is less; 0: one part's
  // are not known. ptxas gives other counts for both bodies in one kernel: this is an estimate.
  uint32_t registers = 0;
  bool capped = false;          // fewer than the larger part's worker twin has: it may spill
  bool move_registers = false;  // in place of capped: setmaxnreg gives each part its own
  uint32_t blocks_per_sm = 0;   // by threads, shared memory and registers that are known
};

// All ratios of which an SM holds a block, by the Tensor part's copies, then by the other's. None
// for numbers that LayOut refuses. Threads that all had the larger part's registers may not fit:
// ptxas then gives as many as do, so that such a ratio is capped, and refused only below
// `registers_capped_min`. With `may_move` (FusedChecked says so) registers move instead, wherever
// that gives both parts theirs.
std::vector<FusedRatio> FeasibleRatios(const PartNeeds& tensor, const PartNeeds& cuda,
                                       const SmLimits& limits = {}, bool may_move = false);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_FUSED_LAYOUT_H_
