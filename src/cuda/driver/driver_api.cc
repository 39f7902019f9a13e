// Resolves the driver's functions. See driver_api.h.

#include "src/cuda/driver/driver_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace gpushare::cuda {
namespace {

// Two steps, so that the preprocessor expands cuda.h's version macros before the name becomes text.
#define GPUSHARE_TEXT(x) #x
#define GPUSHARE_NAME_OF(function) GPUSHARE_TEXT(function)

constexpr char kDriverLibrary[] = "libcuda.so.1";

template <class Function>
absl::Status Resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("No CUDA device is usable: the driver library has no ",
                                             name, ", which CUDA 13.0 and later have."));
}

}  // namespace

absl::StatusOr<DriverApi> LoadDriverApi() {
  void* const library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const text = dlerror();
    return absl::UnavailableError(absl::StrCat("No CUDA device is usable: the driver library ",
                                               kDriverLibrary, " cannot be opened (",
                                               text == nullptr ? "no reason given" : text, ")."));
  }
  DriverApi api;
#define GPUSHARE_RESOLVE(function)                                                      \
  if (absl::Status status = Resolve(library, GPUSHARE_NAME_OF(function), api.function); \
      !status.ok()) {                                                                   \
    return status;                                                                      \
  }
  GPUSHARE_DRIVER_FUNCTIONS(GPUSHARE_RESOLVE)
#undef GPUSHARE_RESOLVE
  return api;
}

}  // namespace gpushare::cuda
