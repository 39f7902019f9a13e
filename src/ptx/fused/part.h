// One kernel as it comes into a fused block: parsed, checked, and what of it must move.
//
// Where in the flow: parser, checks and outline -> part -> layout -> the writer of a fused twin.
// Every refusal of one part by itself is here or in what the twins refuse (checks.h).
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_FUSED_PART_H_
#define GPUSHARE_SRC_PTX_FUSED_PART_H_

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "src/ptx/analysis/checks.h"
#include "src/ptx/base/refusal.h"
#include "src/ptx/fused/layout.h"
#include "src/ptx/text/module.h"
#include "src/ptx/text/outline.h"

namespace gpushare::ptx {

// A kernel to fuse. The text must outlive what is made of it.
struct FusedPart {
  std::string_view text = {};
  std::string_view entry = {};  // empty: the module's only one
  // The block that the original is launched with. Zeros: what the text requires (.reqntid).
  std::array<uint32_t, 3> block = {0, 0, 0};
  uint32_t dynamic_shared_bytes = 0;  // of an original block
  uint32_t copies = 1;                // blocks of this kernel in a fused block
  uint32_t registers = 0;             // of a thread of its worker twin; 0: not known
};

// The worker's words: worker.cuh's two claims and what its first thread keeps.
inline constexpr uint32_t kWorkerWordsBytes = 48;
inline constexpr uint32_t kWorkerWordsAlign = 32;

struct Part {
  Module module;
  Findings findings;
  Outline outline;
  PartNeeds needs;
  std::array<uint32_t, 3> block = {1, 1, 1};
  bool is_flat = true;
  uint32_t dynamic_shared_bytes = 0;
  bool calls_assert = false;
  // The kernel's parameters as one struct of C, as a task's packed arguments are.
  std::vector<uint32_t> parameter_offsets;
  uint32_t parameters_bytes = 0;
  uint32_t parameters_align = 8;
  // Offsets in a copy's shared memory. Dynamic memory begins at 0, where it has the alignment that
  // Tensor-core kernels rely on.
  std::map<SymbolId, uint32_t> shared;
  uint32_t words_offset = 0;
  std::vector<uint32_t> barriers;        // the numbers in use, in order
  std::vector<uint32_t> variable_items;  // of outline.variables: what the kernel uses
  // Special registers whose value the fused block has to compute.
  std::vector<std::string_view> specials;

  // Where a barrier of the original is among those of a copy.
  uint32_t BarrierIndex(uint32_t number) const;
};

// The number of a barrier statement, its place among the words, and whether its threads are stated.
struct BarrierOperands {
  uint32_t word = UINT32_MAX;  // of Module::words; UINT32_MAX: the number is no constant
  uint32_t number = 0;
  bool counted = false;
};
BarrierOperands ReadBarrierOperands(const Module& module, const Statement& statement);

Refusal ReadPart(const FusedPart& asked, Part& part);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_FUSED_PART_H_
