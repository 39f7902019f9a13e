// Where the parameters of a loaded function lie in a task's packed arguments.
//
// A launch gives the driver the address of each parameter. The other way, one packed buffer
// (CU_LAUNCH_PARAM_BUFFER_POINTER), is not used: the compiler aligns a parameter within the
// constant bank, which does not start at a multiple of 64 bytes. So a struct with a tensor map, as
// first parameter, lies at offset 48 and not at 0, and as the second after a launch header at 176
// and not at 128; a buffer packed as C does is read 48 bytes too late (docs/hardware.md).
//
// Threads: any, read only after Read.

#ifndef GPUSHARE_SRC_CUDA_PARAMETER_LAYOUT_H_
#define GPUSHARE_SRC_CUDA_PARAMETER_LAYOUT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/cuda/driver_api.h"

namespace gpushare::cuda {

// A function with more parameters is refused at registration: CUDA's 4 KB hold 512 pointers.
inline constexpr size_t kParametersMax = 512;

// Addresses for cuLaunchKernel.
using ParameterAddresses = std::array<void*, kParametersMax>;

class ParameterLayout {
 public:
  // The arguments begin with parameter `first`: 1 where a launch header goes before them. Errors:
  // RESOURCE_EXHAUSTED more than kParametersMax parameters; what the driver says.
  absl::Status Read(const DriverApi& api, CUfunction function, size_t first,
                    absl::string_view kernel);

  // Bytes of the parameters before the first of the arguments: of the launch header.
  size_t header_bytes() const { return header_bytes_; }

  // INVALID_ARGUMENT when the packed arguments are fewer than the function reads.
  absl::Status Check(size_t argument_bytes, absl::string_view kernel) const;

  // The addresses of the parameters from `first` on; `arguments` is null only where Check accepts
  // no arguments.
  void Fill(const void* arguments, ParameterAddresses& addresses) const;

 private:
  size_t first_ = 0;
  std::vector<size_t> offsets_;  // of the arguments, from the first one's
  size_t bytes_ = 0;
  size_t header_bytes_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_PARAMETER_LAYOUT_H_
