// A library of the driver that its last user unloads.
//
// Threads: one at a time; the primary context is current, also where the last user ends.

#ifndef GPUSHARE_SRC_CUDA_CODE_KERNEL_LIBRARY_H_
#define GPUSHARE_SRC_CUDA_CODE_KERNEL_LIBRARY_H_

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class KernelLibrary {
 public:
  KernelLibrary(const DriverApi& api, CUlibrary library) : api_(api), library_(library) {}
  ~KernelLibrary() {
    if (!leaked_) api_.cuLibraryUnload(library_);
  }
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  CUlibrary handle() const { return library_; }
  // The context is lost: nothing is unloaded.
  void Leak() { leaked_ = true; }

 private:
  const DriverApi& api_;
  const CUlibrary library_;
  bool leaked_ = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_KERNEL_LIBRARY_H_
