// Loads functions of modules again as kernels. See function_kernels.h.

#include "src/cuda/graphs/function_kernels.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
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

void FunctionKernels::Leak() {
  for (const std::shared_ptr<KernelLibrary>& library : used_) library->Leak();
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
  return LoadImage(function, *image);
}

absl::StatusOr<CUkernel> FunctionKernels::LoadImage(CUfunction function,
                                                    const core::FunctionImage& image) {
  absl::StatusOr<std::shared_ptr<KernelLibrary>> library = libraries_->Of(image.image);
  if (!library.ok()) return library.status();
  CUkernel kernel = nullptr;
  GPUSHARE_CU_RETURN(*api_, cuLibraryGetKernel(&kernel, (*library)->handle(), image.name.c_str()));
  if (absl::Status status = CheckSame(function, kernel); !status.ok()) return status;
  used_.push_back(*std::move(library));
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
