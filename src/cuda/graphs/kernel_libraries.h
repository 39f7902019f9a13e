// Images of functions that are loaded as libraries, each once and for as long as a graph uses it.
//
// Threads: one at a time; the primary context is current, also where the last user of one ends.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_KERNEL_LIBRARIES_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_KERNEL_LIBRARIES_H_

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/cuda/code/kernel_library.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class KernelLibraries {
 public:
  explicit KernelLibraries(const DriverApi& api) : api_(api) {}
  KernelLibraries(const KernelLibraries&) = delete;
  KernelLibraries& operator=(const KernelLibraries&) = delete;

  // The library of a cubin, which is read during the call. FAILED_PRECONDITION: its module has
  // variables; RESOURCE_EXHAUSTED: those in use would have more than kMaxFunctionImageBytes;
  // otherwise the driver's error.
  absl::StatusOr<std::shared_ptr<KernelLibrary>> Of(absl::Span<const char> cubin);

 private:
  using Key = std::pair<size_t, size_t>;  // digest and size

  // How many bytes are in use; forgets what is not.
  size_t BytesInUse();

  const DriverApi& api_;
  std::map<Key, std::weak_ptr<KernelLibrary>> loaded_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_KERNEL_LIBRARIES_H_
