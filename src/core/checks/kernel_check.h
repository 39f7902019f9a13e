// What a kernel must be before the device and the flow see it. Pure; threads: any.

#ifndef GPUSHARE_SRC_CORE_CHECKS_KERNEL_CHECK_H_
#define GPUSHARE_SRC_CORE_CHECKS_KERNEL_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/library_call.h"

namespace gpushare::core {

// Replaces what is still unknown (0): threads by the product of the block's shape, else by the
// default; shared memory by its dynamic part.
void FillUnknown(KernelDesc& kernel);

// INVALID_ARGUMENT for a value out of its range, a shape that contradicts its product or belongs to
// another kind, a graph in two forms or with options that its form does not have.
absl::Status CheckKernel(const KernelDesc& kernel);

// INVALID_ARGUMENT for a shape that the operation needs and lacks, is out of range, or does not fit
// together; `name` is the kernel's. What the library itself refuses is found at registration.
absl::Status CheckLibraryCall(const std::string& name, const LibraryCall& call);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_CHECKS_KERNEL_CHECK_H_
