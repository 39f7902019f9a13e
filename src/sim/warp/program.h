// What the warps of a kernel execute: a list of instructions with counted loops.
//
// All warps of a kernel run one program. An instruction names the older instructions whose results
// it needs, by distance; a memory access names its first byte as a linear function of block, warp
// and loop counters, as an array index in source code does. There are no branches on data.
// Programs come from the trace parser (trace_parser.h) and from the generators (kernels/).
// Invariant: a program that Check accepts ends, after at most kMaxWarpInstructions instructions a
// warp. Threads: a program is read only while it runs.

#ifndef GPUSHARE_SRC_SIM_WARP_PROGRAM_H_
#define GPUSHARE_SRC_SIM_WARP_PROGRAM_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gpushare::sim::warp {

// The bounds of a program. They bound memory and time of a simulation of any accepted trace.
inline constexpr int kMaxOps = 4096;  // instructions and loop ends of the text, runs unrolled
inline constexpr int kMaxLoopDepth = 3;
inline constexpr int kMaxDependences = 2;
inline constexpr int kMaxDistance = 15;  // to the producer; a warp remembers 16 completion cycles
inline constexpr int kMaxRegions = 16;
inline constexpr int kMaxLines = 32;  // lines of one access: one a thread
inline constexpr int64_t kMaxRegionBytes = int64_t{1} << 40;
inline constexpr int64_t kMaxStrideBytes = int64_t{1} << 40;
inline constexpr int64_t kMaxLineStrideBytes = int64_t{1} << 30;
inline constexpr int64_t kMaxLoopCount = int64_t{1} << 30;
inline constexpr int64_t kMaxWarpInstructions = int64_t{1} << 40;
inline constexpr int64_t kMaxGridBlocks = int64_t{1} << 30;
inline constexpr int kMaxWarpsPerBlock = 32;
inline constexpr int kMaxOpCycles = 100'000;

// Kinds that an SM executes, and the end of a loop, which takes no issue slot.
enum class OpKind : uint8_t {
  kInt,      // integer, logic, compare, move
  kFloat,    // FADD, FMUL, FFMA
  kDouble,   // FP64
  kSpecial,  // reciprocal, sine, exponential
  kTensor,   // one matrix instruction
  kControl,  // branches
  kShared,   // shared memory, read or written
  kLoad,     // global memory
  kStore,
  kBarrier,  // waits for the block's other warps
  kLoopEnd,
};
inline constexpr int kOpKinds = 11;

struct Op {
  OpKind kind = OpKind::kInt;
  // Distances to producers, counted in issued instructions of the warp; 0: none.
  std::array<uint8_t, kMaxDependences> after = {};
  int32_t latency = -1;   // cycles until the result can be used; -1: the machine's
  int32_t interval = -1;  // cycles that the unit takes no other instruction; -1: the machine's

  // kShared: passes over the banks, drawn for each execution from this range.
  uint8_t ways_min = 1;
  uint8_t ways_max = 1;

  // kLoad and kStore: `lines` pieces of `sectors` sectors of 32 bytes, line_stride bytes apart.
  // The first byte is offset + block x per_block + warp x per_warp + sum of counter x per_loop,
  // modulo the region's size. The outermost loop is per_loop[0].
  uint8_t region = 0;
  uint8_t lines = 1;
  uint8_t sectors = 4;
  int64_t line_stride = 128;
  int64_t offset = 0;
  int64_t per_block = 0;
  int64_t per_warp = 0;
  std::array<int64_t, kMaxLoopDepth> per_loop = {};

  // kLoopEnd: back to `target` until the body has run `count` times.
  int32_t target = 0;
  uint8_t depth = 0;
  int64_t count = 0;
};

struct Region {
  std::string name;
  int64_t bytes = 0;
};

struct Program {
  std::string name;
  int warps_per_block = 1;
  int64_t grid_blocks = 1;   // on this SM
  int64_t shared_bytes = 0;  // of a block
  std::vector<Region> regions;
  std::vector<Op> ops;
};

// Errors: INVALID_ARGUMENT with the operation, the value and the limit.
absl::Status Check(const Program& program);

// Instructions of one warp. Of a program that Check accepts.
int64_t InstructionsPerWarp(const Program& program);

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_PROGRAM_H_
