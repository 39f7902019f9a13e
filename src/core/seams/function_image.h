// What a function of a module was loaded from. See docs/compiled-kernels.md.

#ifndef GPUSHARE_SRC_CORE_SEAMS_FUNCTION_IMAGE_H_
#define GPUSHARE_SRC_CORE_SEAMS_FUNCTION_IMAGE_H_

#include <string>

#include "absl/types/span.h"

namespace gpushare::core {

// Native handles are opaque to core. The bytes are the caller's; devices copy what they need.
struct FunctionImage {
  const void* function = nullptr;
  absl::Span<const char> image = {};
  std::string name = {};  // of the kernel in the image
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_FUNCTION_IMAGE_H_
