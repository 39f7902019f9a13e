// Kernels for functions that belong to one context.
//
// Triton, Inductor and others load a cubin as a module, whose function runs in its context only.
// The same cubin loaded again as a library has a kernel that runs in the context of every place. It
// is the same code with the same parameters: that is checked. A module with variables of its own is
// not loaded again, because the kernel would have others.
// Threads: one at a time; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_FUNCTION_KERNELS_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_FUNCTION_KERNELS_H_

#include <cuda.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/core/seams/function_image.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/graphs/kernel_libraries.h"

namespace gpushare::cuda {

// Of one graph: the kernels that its functions have in other places.
class FunctionKernels {
 public:
  FunctionKernels(const DriverApi& api, KernelLibraries& libraries)
      : api_(&api), libraries_(&libraries) {}

  // The images that the graph's registration came with. They are read until Close.
  void Offer(absl::Span<const core::FunctionImage> images) { offered_ = images; }
  // What was found stays.
  void Close() { offered_ = {}; }
  // The context is lost: no library is unloaded.
  void Leak();

  // Null where no image is known, or it is of no use: WhyNot says why.
  CUkernel KernelOf(CUfunction function);
  // Why the last function without a kernel has none: "'softmax' is a function of a module, and no
  // image of it is known". What follows a colon.
  std::string WhyNot() const;

 private:
  struct Found {
    CUkernel kernel = nullptr;
    std::string why_not;
  };
  absl::StatusOr<CUkernel> Load(CUfunction function);
  absl::StatusOr<CUkernel> LoadImage(CUfunction function, const core::FunctionImage& image);
  absl::Status CheckSame(CUfunction function, CUkernel kernel) const;

  const DriverApi* api_;
  KernelLibraries* libraries_;
  absl::Span<const core::FunctionImage> offered_;
  std::unordered_map<CUfunction, Found> found_;
  std::vector<std::shared_ptr<KernelLibrary>> used_;
  CUfunction refused_ = nullptr;  // the last one without a kernel
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_FUNCTION_KERNELS_H_
