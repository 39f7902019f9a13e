// Reads where a function's parameters lie. See parameter_layout.h.

#include "src/cuda/code/parameter_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

absl::Status ParameterLayout::Read(const DriverApi& api, CUfunction function, size_t first,
                                   absl::string_view kernel) {
  first_ = first;
  offsets_.clear();
  bytes_ = header_bytes_ = 0;
  size_t begin = 0;
  for (size_t i = 0;; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    const CUresult code = api.cuFuncGetParamInfo(function, i, &offset, &bytes);
    if (code == CUDA_ERROR_INVALID_VALUE) return absl::OkStatus();  // past the last parameter
    if (code != CUDA_SUCCESS) {
      return StatusOf(api, code, "cuFuncGetParamInfo", __FILE__, __LINE__);
    }
    if (i == kParametersMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("Kernel '", kernel, "' has more than ", kParametersMax, " parameters."));
    }
    if (i < first) {
      header_bytes_ += bytes;
      continue;
    }
    if (i == first) begin = offset;
    offsets_.push_back(offset - begin);
    bytes_ = std::max(bytes_, offset - begin + bytes);
  }
}

absl::Status ParameterLayout::Check(size_t argument_bytes, absl::string_view kernel) const {
  // A parameter struct without members has one byte, which callers do not pass.
  if (argument_bytes >= bytes_ || bytes_ == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("Kernel '", kernel, "' comes with ", argument_bytes,
                   " bytes of arguments, and its function takes ", bytes_, "."));
}

void ParameterLayout::Fill(const void* arguments, ParameterAddresses& addresses) const {
  static char none = 0;
  char* const packed =
      arguments == nullptr ? &none : static_cast<char*>(const_cast<void*>(arguments));
  for (size_t i = 0; i < offsets_.size(); ++i) addresses[first_ + i] = packed + offsets_[i];
}

}  // namespace gpushare::cuda
