// Reads from a kernel's options which code it has: functions, a graph or a library call. Pure.

#ifndef GPUSHARE_BINDINGS_C_KERNEL_CODE_H_
#define GPUSHARE_BINDINGS_C_KERNEL_CODE_H_

#include <gpushare/gpushare.h>

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"

namespace gpushare::abi {

// Sets the code of `out`. Without a kind in the options, the kernel keeps the one that it has. An
// instantiated graph makes the kernel not confinable.
// INVALID_ARGUMENT: the options have a part of the code of another kind.
absl::Status ReadCode(const gpushare_kernel_options& options, core::KernelDesc& out);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_KERNEL_CODE_H_
