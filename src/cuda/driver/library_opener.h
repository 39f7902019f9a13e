// Opens cuBLASLt, cuDNN, nvJitLink and CUPTI at run time, wherever they are installed.
//
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_LIBRARY_OPENER_H_
#define GPUSHARE_SRC_CUDA_DRIVER_LIBRARY_OPENER_H_

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace gpushare::cuda {

// Searches in this order: the folders in GPUSHARE_CUDA_LIBRARY_PATH (separated by colons), the
// dynamic linker's search path, the toolkit's usual folders. The library stays open until the
// process ends, because other parts of the process may use it.
// `user` says in the message what needs it: "a library call".
// Errors: UNAVAILABLE, with the dynamic linker's message.
absl::StatusOr<void*> OpenLibrary(const char* file_name, const char* user = "a library call");

template <class Function>
absl::Status ResolveFunction(void* library, const char* library_name, const char* name,
                             Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("The library ", library_name, " has no function ", name,
                   ", so it is of another version than this one was built for."));
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_LIBRARY_OPENER_H_
