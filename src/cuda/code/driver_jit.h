// The driver's own assembler, where nvJitLink is not installed or does not take a text.
//
// It makes code of the GPU of the current context, and says what it made, so that the cache can
// keep it. Threads: any with the primary context current.

#ifndef GPUSHARE_SRC_CUDA_CODE_DRIVER_JIT_H_
#define GPUSHARE_SRC_CUDA_CODE_DRIVER_JIT_H_

#include <string>

#include "src/cuda/code/assemble.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class DriverJit final : public Assembler {
 public:
  explicit DriverJit(const DriverApi& api);

  std::string Name() const override { return name_; }
  std::string Options() const override { return ""; }
  absl::StatusOr<std::string> Assemble(absl::string_view text,
                                       absl::string_view architecture) const override;

 private:
  const DriverApi& api_;
  std::string name_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_DRIVER_JIT_H_
