// What a cubin says of itself: an ELF file of 64 bits, whose sections name its device memory.
//
// A module that is loaded twice has its variables twice, so a kernel that has some is not the same
// in both. Strings and tables that compilers make are no variables: nobody writes them. Bytes come
// from the application: nothing here trusts them. Pure; threads: any.

#ifndef GPUSHARE_SRC_CUDA_CODE_CUBIN_H_
#define GPUSHARE_SRC_CUDA_CODE_CUBIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace gpushare::cuda {

// A variable of the module, or the section that holds some, such as ".nv.global"; empty where it
// has none. INVALID_ARGUMENT: the bytes are no cubin, or end before their sections do.
absl::StatusOr<std::string> VariableOf(absl::Span<const char> cubin);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_CUBIN_H_
