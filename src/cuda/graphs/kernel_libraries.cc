// Loads cubins as libraries. See kernel_libraries.h.

#include "src/cuda/graphs/kernel_libraries.h"

#include <functional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/cuda/code/cubin.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

absl::StatusOr<std::shared_ptr<KernelLibrary>> KernelLibraries::Of(absl::Span<const char> cubin) {
  const std::string_view bytes(cubin.data(), cubin.size());
  const Key key(std::hash<std::string_view>()(bytes), bytes.size());
  const auto known = loaded_.find(key);
  if (known != loaded_.end()) {
    if (std::shared_ptr<KernelLibrary> library = known->second.lock()) return library;
  }
  absl::StatusOr<std::string> variable = VariableOf(cubin);
  if (!variable.ok()) return variable.status();
  if (!variable->empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("its module has variables (", *variable, ")"));
  }
  if (BytesInUse() + bytes.size() > core::kMaxFunctionImageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the images of all functions in use have more "
                     "than ",
                     core::kMaxFunctionImageBytes, " bytes"));
  }
  CUlibrary library = nullptr;
  GPUSHARE_CU_RETURN(
      api_, cuLibraryLoadData(&library, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  auto loaded = std::make_shared<KernelLibrary>(api_, library);
  loaded_[key] = loaded;
  return loaded;
}

size_t KernelLibraries::BytesInUse() {
  std::erase_if(loaded_, [](const auto& entry) { return entry.second.expired(); });
  size_t bytes = 0;
  for (const auto& [key, library] : loaded_) bytes += key.second;
  return bytes;
}

}  // namespace gpushare::cuda
