// Where each parameter of a loaded function lies in a task's packed arguments.
//
// A launch passes the address of each parameter to the driver. It does not pass one packed buffer
// (CU_LAUNCH_PARAM_BUFFER_POINTER): the compiler aligns parameters within the constant bank, which
// does not start at a multiple of 64 bytes. So a struct with a tensor map lies at offset 48, not 0,
// as the first parameter, and at 176, not 128, behind a launch header. A buffer packed as in C
// would be read 48 bytes too late (docs/hardware.md).
//
// Threads: any, once Read has returned.

#ifndef GPUSHARE_SRC_CUDA_CODE_PARAMETER_LAYOUT_H_
#define GPUSHARE_SRC_CUDA_CODE_PARAMETER_LAYOUT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

// Registration refuses a function with more parameters. CUDA's 4 KB of parameters hold 512
// pointers.
inline constexpr size_t kParametersMax = 512;

// The addresses that cuLaunchKernel takes.
using ParameterAddresses = std::array<void*, kParametersMax>;

class ParameterLayout {
 public:
  // Reads the layout. The arguments start with parameter `first`, which is 1 behind a launch
  // header.
  // Errors: RESOURCE_EXHAUSTED for more than kParametersMax parameters; otherwise the driver's
  // error.
  absl::Status Read(const DriverApi& api, CUfunction function, size_t first,
                    absl::string_view kernel);

  // Size of the parameters before the arguments: the size of the launch header.
  size_t header_bytes() const { return header_bytes_; }

  // Errors: INVALID_ARGUMENT if the packed arguments are shorter than what the function reads.
  absl::Status Check(size_t argument_bytes, absl::string_view kernel) const;

  // Sets the addresses of the parameters from `first` on. `arguments` may be null only if Check
  // accepts 0 bytes.
  void Fill(const void* arguments, ParameterAddresses& addresses) const;

 private:
  size_t first_ = 0;
  std::vector<size_t> offsets_;  // of each argument from the first one
  size_t bytes_ = 0;
  size_t header_bytes_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_PARAMETER_LAYOUT_H_
