// Makes twins: the worker and the slice form of a kernel of which only the PTX is known.
//
// Where in the flow: the facade of src/ptx; kernel registration and `gpushare ptx` call it. Text
// in, text out; assembling the text is the caller's (src/cuda/code).
//
//   const Checked checked = Check(text, "add_kernel");         // may this kernel have twins?
//   const Twin twin = Transform(text, "add_kernel", {.workers = true, .slice = true});
//   if (!twin.ok()) report(twin.refusal);                      // reason, line, sentence
//   else assemble(twin.text), load twin.worker_entry, twin.slice_entry
//
// A twin takes `gpushare_worker_launch` (gpushare/device/launch.h) before the kernel's own
// parameters. A launch gives the driver the address of each parameter: the header, then those of
// `KernelFacts::parameters`. It runs with the original's block shape and dynamic shared memory.
//
// Invariants
// - What is not touched stays byte for byte. The twins follow the original entry in the same
//   module, so that they share its global variables.
// - Memory and time are bounded by limits.h on any input, and no input throws or aborts.
// Threads: any; pure functions.

#ifndef GPUSHARE_SRC_PTX_TWIN_H_
#define GPUSHARE_SRC_PTX_TWIN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/ptx/base/refusal.h"

namespace gpushare::ptx {

// Which forms the returned module holds.
struct Forms {
  bool original = true;  // keep the original entry; alone: the text comes back byte for byte
  bool workers = false;
  bool slice = false;
};

struct Options {
  // Registers a thread that the assembler may give the twins (`.maxnreg`); 0: the assembler
  // decides. The original's count, rounded up to 8, keeps as many workers on an SM.
  uint32_t worker_registers_max = 0;
  uint32_t slice_registers_max = 0;
};

struct ParameterFact {
  uint32_t size_bytes = 0;
  uint32_t align_bytes = 0;
};

// What the text says about the kernel.
struct KernelFacts {
  std::string entry;
  uint32_t line = 0;                      // of the entry
  std::vector<ParameterFact> parameters;  // of the original, in order
  uint32_t parameters_bytes = 0;          // with their alignment, as the original takes them
  std::array<uint32_t, 3> block_required = {0, 0, 0};  // .reqntid; zeros: not stated
  std::array<uint32_t, 3> block_max = {0, 0, 0};       // .maxntid; zeros: not stated
  uint32_t static_shared_bytes = 0;                    // of the original
  uint32_t twin_shared_bytes = 0;  // static shared memory that a worker twin adds
  bool dynamic_shared = false;     // uses an extern .shared array
  bool early_exits = false;        // some threads may end before the others' last barrier
  bool uses_grid_size = false;     // reads %nctaid: the header's grid is what it sees
  bool needs_flat_block = false;   // twins hold for blocks of one dimension alone
  uint32_t instructions = 0;
};

struct Checked {
  KernelFacts facts;  // complete if ok
  Refusal refusal;
  bool ok() const { return refusal.reason == Reason::kNone; }
};

struct Twin {
  std::string text;          // the module; empty unless ok
  std::string worker_entry;  // empty unless asked for
  std::string slice_entry;
  KernelFacts facts;
  Refusal refusal;
  bool ok() const { return refusal.reason == Reason::kNone; }
};

// The names of all entries of a module, in its order. Empty if the text does not parse.
std::vector<std::string> Entries(std::string_view text);

// Whether the kernel may have twins. An empty entry means the module's only one.
Checked Check(std::string_view text, std::string_view entry);

// The module with the forms asked for.
Twin Transform(std::string_view text, std::string_view entry, const Forms& forms,
               const Options& options = {});

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TWIN_H_
