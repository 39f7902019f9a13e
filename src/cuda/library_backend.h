// One library behind the library calls: how it is opened, its handles, its plans.
//
// A plan is what a registered call became on a number of SMs: descriptors and algorithm. Its first
// run may pass over an algorithm that the SMs refuse; from then on it does not change for its
// callers, so that every lane with that many SMs shares it. Threads: plans any; a handle one thread
// at a time.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_BACKEND_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver_api.h"

namespace gpushare::cuda {

// Of each lane, as cuBLAS takes for Hopper by default: smaller ones lose split-K algorithms.
inline constexpr size_t kWorkspaceBytes = size_t{32} << 20;

struct OperandBytes {
  size_t a = 0;
  size_t b = 0;
  size_t d = 0;
};

class LibraryPlan {
 public:
  virtual ~LibraryPlan() = default;
  virtual OperandBytes operands() const = 0;
  // `handle` was made for `stream`; `workspace` has kWorkspaceBytes. The stream's context is
  // current.
  virtual absl::Status Enqueue(void* handle, CUstream stream, void* workspace,
                               const core::LibraryArguments& arguments) const = 0;
  // The call in every form that Enqueue may choose, so that the code of all is loaded: a load waits
  // for the device.
  virtual absl::Status EnqueueFirst(void* handle, CUstream stream, void* workspace,
                                    const core::LibraryArguments& arguments) const {
    return Enqueue(handle, stream, workspace, arguments);
  }
};

class LibraryBackend {
 public:
  virtual ~LibraryBackend() = default;
  virtual absl::StatusOr<void*> MakeHandle(CUstream stream) = 0;
  virtual void DestroyHandle(void* handle) = 0;
  // The backend outlives its plans.
  virtual absl::StatusOr<std::unique_ptr<LibraryPlan>> MakePlan(void* handle,
                                                                const core::KernelDesc& kernel,
                                                                int32_t sm_count) = 0;
};

// Errors: UNAVAILABLE the library is not installed; UNIMPLEMENTED this build lacks its headers.
// `api` outlives the backend.
absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCublasLt(const DriverApi& api);
absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCudnn();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_BACKEND_H_
