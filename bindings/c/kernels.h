// Converts the ABI's kernel options and simulation record to the core's description. Pure.

#ifndef GPUSHARE_BINDINGS_C_KERNELS_H_
#define GPUSHARE_BINDINGS_C_KERNELS_H_

#include <gpushare/gpushare.h>

#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"

namespace gpushare::abi {

// `known` (may be null) is the profile's kernel of that name. It fills fields that the caller
// leaves zero.
absl::StatusOr<core::KernelDesc> KernelDescOf(const gpushare_kernel_options& options,
                                              const core::KernelDesc* known);

// The description of a fused kernel, without its parts.
absl::StatusOr<core::FusedKernelDesc> FusedShapeOf(const gpushare_fused_kernel_options& options);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_KERNELS_H_
