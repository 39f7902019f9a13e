// Loads functions of modules again as kernels. See function_kernels.h.

#include "src/cuda/graphs/function_kernels.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "src/cuda/code/cubin.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// Equal for one code, whatever the application has set on the function.
constexpr std::array kCodeAttributes = {
    CU_FUNC_ATTRIBUTE_NUM_REGS,         CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION,   CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
};

std::string NameOf(const DriverApi& api, CUfunction function) {
  const char* name = nullptr;
  if (api.cuFuncGetName(&name, function) != CUDA_SUCCESS || name == nullptr) return "?";
  return name;
}

// A function's parameters, as offsets and bytes in turn.
std::vector<size_t> ParametersOf(const DriverApi& api, CUfunction function) {
  std::vector<size_t> out;
  for (size_t i = 0;; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    if (api.cuFuncGetParamInfo(function, i, &offset, &bytes) != CUDA_SUCCESS) return out;
    out.push_back(offset);
    out.push_back(bytes);
  }
}

}  // namespace

void KernelLibraries::Unload() {
  for (const auto& [key, library] : loaded_) api_.cuLibraryUnload(library);
  loaded_.clear();
  bytes_ = 0;
}

absl::StatusOr<CUkernel> KernelLibraries::KernelOf(const core::FunctionImage& image) {
  const std::string_view bytes(image.image.data(), image.image.size());
  const auto key = std::make_pair(std::hash<std::string_view>()(bytes), bytes.size());
  auto entry = loaded_.find(key);
  if (entry == loaded_.end()) {
    absl::StatusOr<std::string> variable = VariableOf(image.image);
    if (!variable.ok()) return variable.status();
    if (!variable->empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("its module has variables (", *variable, ")"));
    }
    if (bytes_ + bytes.size() > core::kMaxImageBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the images of all functions have more than ", core::kMaxImageBytes, " bytes"));
    }
    CUlibrary library = nullptr;
    GPUSHARE_CU_RETURN(
        api_, cuLibraryLoadData(&library, bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    bytes_ += bytes.size();
    entry = loaded_.emplace(key, library).first;
  }
  CUkernel kernel = nullptr;
  GPUSHARE_CU_RETURN(api_, cuLibraryGetKernel(&kernel, entry->second, image.name.c_str()));
  return kernel;
}

CUkernel FunctionKernels::KernelOf(CUfunction function) {
  auto known = found_.find(function);
  if (known == found_.end()) {
    absl::StatusOr<CUkernel> loaded = Load(function);
    known = found_.try_emplace(function).first;
    if (loaded.ok()) known->second.kernel = *loaded;
    if (!loaded.ok()) known->second.why_not = std::string(loaded.status().message());
  }
  if (known->second.kernel == nullptr) refused_ = function;
  return known->second.kernel;
}

std::string FunctionKernels::WhyNot() const {
  const auto known = found_.find(refused_);
  if (known == found_.end()) return "its child graphs are too deep";
  return absl::StrCat("'", NameOf(*api_, refused_), "' is a function of a module, and ",
                      known->second.why_not);
}

absl::StatusOr<CUkernel> FunctionKernels::Load(CUfunction function) {
  // The driver may give a new function the address of one that was unloaded: the last one counts.
  const auto image = std::find_if(offered_.rbegin(), offered_.rend(),
                                  [&](const auto& one) { return one.function == function; });
  if (image == offered_.rend()) return absl::NotFoundError("no image of it is known");
  absl::StatusOr<CUkernel> kernel = libraries_->KernelOf(*image);
  if (!kernel.ok()) return kernel;
  if (absl::Status status = CheckSame(function, *kernel); !status.ok()) return status;
  return kernel;
}

absl::Status FunctionKernels::CheckSame(CUfunction function, CUkernel kernel) const {
  CUfunction again = nullptr;
  GPUSHARE_CU_RETURN(*api_, cuKernelGetFunction(&again, kernel));
  for (const CUfunction_attribute attribute : kCodeAttributes) {
    int given = 0;
    int loaded = 0;
    GPUSHARE_CU_RETURN(*api_, cuFuncGetAttribute(&given, attribute, function));
    GPUSHARE_CU_RETURN(*api_, cuFuncGetAttribute(&loaded, attribute, again));
    if (given != loaded) return absl::FailedPreconditionError("its image has other code");
  }
  if (ParametersOf(*api_, function) != ParametersOf(*api_, again)) {
    return absl::FailedPreconditionError("its image has other parameters");
  }
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
