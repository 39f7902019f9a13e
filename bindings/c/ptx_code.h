// Reads a kernel's PTX and makes its twins: gpushare_ptx_code to the core's description.
//
// Where in the flow: before a registration, without a lock, because a long text takes 20 ms. Every
// device gets the result; only CUDA's assembles it. Pure; threads: any.

#ifndef GPUSHARE_BINDINGS_C_PTX_CODE_H_
#define GPUSHARE_BINDINGS_C_PTX_CODE_H_

#include <gpushare/gpushare.h>

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/ptx/twin.h"

namespace gpushare::abi {

// The caller's text, checked. It lives as long as the caller's.
struct PtxSource {
  std::string_view text;
  std::string_view entry;    // "": the only one
  ptx::Forms forms;          // with the original
  bool graph_nodes = false;  // GPUSHARE_PTX_FORM_GRAPH_NODES
};

// INVALID_ARGUMENT: no text, one that is too long, forms that do not exist.
absl::StatusOr<PtxSource> ReadPtxSource(const gpushare_ptx_code* code);

// A kernel's code, and what its launches must keep to.
struct MadePtx {
  core::PtxCode code;
  uint64_t threads_max = 0;       // of a block (.maxntid); 0: not stated
  bool needs_flat_block = false;  // its twins hold for blocks of one dimension alone
};

// The module with the forms that can be made. A form that is refused says so and is no error.
// NOT_FOUND: the text has no such kernel.
absl::StatusOr<MadePtx> MakePtxCode(const PtxSource& source);

// Why the one form of the source cannot be made; without a refusal it can. Makes no module.
// NOT_FOUND: the text has no such kernel.
absl::StatusOr<core::PtxForm> CheckPtxForm(const PtxSource& source);

// Gives the kernel this code. With a worker form it is evictable, unless the options say no. Twins
// that do not hold for the kernel's block are refused.
// INVALID_ARGUMENT: the options are of another kind, have functions that the text makes, or have a
// block that the text does not allow.
// UNIMPLEMENTED: it must be evictable, and the worker form is refused.
absl::Status TakePtx(const gpushare_kernel_options& options, MadePtx made,
                     core::KernelDesc& kernel);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_PTX_CODE_H_
