// The interface to one library (cuBLASLt or cuDNN): its handles and plans.
//
// A plan is a registered call prepared for a number of SMs: descriptors and an algorithm. Its first
// run may skip an algorithm that the SMs refuse. Afterwards the plan looks constant to callers, so
// all lanes with that many SMs share it.
// Threads: any for plans; one at a time for a handle.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_BACKEND_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

// Workspace of each lane: cuBLAS's default on Hopper. Smaller ones exclude split-K algorithms.
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
  // Runs the call in every form that Enqueue may choose, so that the code of all forms is loaded.
  // Loading code waits for the device.
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
  // The backend must outlive its plans.
  virtual absl::StatusOr<std::unique_ptr<LibraryPlan>> MakePlan(void* handle,
                                                                const core::KernelDesc& kernel,
                                                                int32_t sm_count) = 0;
};

// Errors: UNAVAILABLE if the library is not installed; UNIMPLEMENTED if this build lacks its
// headers. `api` must outlive the backend.
absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCublasLt(const DriverApi& api);
absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCudnn();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_BACKEND_H_
