// Makes fused twins: one kernel whose blocks hold blocks of a Tensor-core kernel and of another one
// side by side. Both are known only as PTX.
//
// Where in the flow: the second facade of src/ptx, beside twin.h; the command calls it. Text in,
// text out; assembling the text is the caller's.
//
//   const FusedPart gemm = {.text = a, .dynamic_shared_bytes = 49152, .registers = 168};
//   const FusedPart norm = {.text = b, .registers = 40};
//   const FusedChecked checked = CheckFused(gemm, norm);          // may this pair be fused?
//   for (const FusedRatio& ratio : FeasibleRatios(checked.tensor, checked.cuda)) ...
//   const FusedTwin twin = Fuse(gemm, norm);
//   if (!twin.ok()) report(twin.refusal);
//   else assemble(twin.text), load twin.entry
//
// The entry has the signature of a fused kernel of <gpushare/device/fused.cuh>: header of the first
// part, its parameters as one struct of C, header of the second part, its parameters. So a loaded
// twin is registered and launched like one (gpushare_fused_kernel_register). Each part has workers
// of its own with its own eviction word: (fused blocks) * copies in a launch.
//
// Invariants
// - The same texts and choices give the same module, byte for byte.
// - Memory and time are bounded by limits.h on any input, and no input throws or aborts.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_FUSED_H_
#define GPUSHARE_SRC_PTX_FUSED_H_

#include <cstdint>
#include <string>

#include "src/ptx/base/refusal.h"
#include "src/ptx/fused/layout.h"
#include "src/ptx/fused/part.h"

namespace gpushare::ptx {

struct FuseOptions {
  // The first part takes registers from the second by setmaxnreg. Target sm_90a, and both parts'
  // `registers` stated.
  bool move_registers = false;
  uint32_t blocks_per_sm = 1;  // with move_registers: how many fused blocks an SM shall hold
  // Registers a thread that the assembler may give (`.maxnreg`); 0: it decides. Not with
  // move_registers, which decides itself.
  uint32_t registers_max = 0;
};

// Which part a refusal is about.
enum class RefusedPart : uint8_t { kBoth, kTensor, kCuda };

struct FusedChecked {
  PartNeeds tensor;  // complete if ok
  PartNeeds cuda;
  bool may_move_registers = false;  // both parts' target and version have setmaxnreg
  RefusedPart refused_part = RefusedPart::kBoth;
  Refusal refusal;  // its line is of the text of `refused_part`; 0: of neither
  bool ok() const { return refusal.reason == Reason::kNone; }
};

struct FusedTwin {
  std::string text;  // a module of its own; empty unless ok
  std::string entry;
  FusedLayout layout;
  uint32_t tensor_parameters_bytes = 0;  // of an original's packed parameters
  uint32_t cuda_parameters_bytes = 0;
  RefusedPart refused_part = RefusedPart::kBoth;
  Refusal refusal;
  bool ok() const { return refusal.reason == Reason::kNone; }
};

// Whether each kernel by itself may be a part, and what it needs. Copies are not looked at.
FusedChecked CheckFused(const FusedPart& tensor, const FusedPart& cuda);

// The fused twin. Its `copies` of each part say the ratio.
FusedTwin Fuse(const FusedPart& tensor, const FusedPart& cuda, const FuseOptions& options = {});

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_FUSED_H_
