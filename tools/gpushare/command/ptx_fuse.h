// `gpushare ptx transform|check FILE --fused OTHER`: one kernel of two PTX texts, and its ratios.
//
// Where in the flow: none; no runtime is opened, and no GPU is needed. It uses src/ptx itself: a
// fused twin has no function of the C API yet. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_PTX_FUSE_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_PTX_FUSE_H_

#include <array>
#include <cstdint>
#include <string>

namespace gpushare::tool {

// Pairs of numbers are of the first part and of the second.
struct PtxFuseRequest {
  std::string file;  // the part whose threads come first: the Tensor-core kernel
  std::string entry;
  std::string other;  // the second part's file; "": nothing is fused
  std::string other_entry;
  std::array<uint32_t, 2> copies = {1, 1};   // blocks of each kernel in a fused block
  std::array<uint32_t, 2> threads = {0, 0};  // of a block of one dimension; 0: as the text has it
  std::array<uint32_t, 2> shared_bytes = {0, 0};  // dynamic, of an original block
  std::array<uint32_t, 2> registers = {0, 0};     // of a thread of each worker twin; 0: not known
  // With setmaxnreg: how many fused blocks an SM shall hold. 0: no registers move.
  uint32_t moving_blocks = 0;
};

// The module of the fused twin. Differs: the pair is refused, with the reason. InputError: a
// file.
std::string FusePtx(const PtxFuseRequest& request);

// A row for each ratio that fits in an SM of an H100 or H200. Throws like FusePtx.
std::string FusedRatiosOf(const PtxFuseRequest& request);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_PTX_FUSE_H_
