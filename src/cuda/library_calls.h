// Library calls on lanes: cuBLASLt matrix products and cuDNN operations
// (src/core/seams/library_call.h).
//
// Where in the flow: Prepare at a kernel's registration, Enqueue at its launch. Each lane has a
// handle of each library in use and one workspace, made at the first Prepare, so that lanes never
// share state and a launch allocates nothing (but see Enqueue). Plans and first runs are made with
// handles that no launch uses. The libraries are opened at the first Prepare that needs them;
// gpushare links neither.
//
// Rows of the operations
// - matmul: row-major, d (m x n) = alpha a (m x k) b (k x n) + beta c; transpose_a: a is stored
//   k x m. Batches lie one behind the other. float32 is computed in float32, not in TF32.
// - convolution: filters as [filters][channels / groups][height][width], channels_last:
//   [filters][height][width][channels / groups]. Average pooling counts the padding. Softmax runs
//   over the channels. These four add only in place: with beta, c is d.
//
// Invariants: Enqueue never answers UNAVAILABLE, which the scheduler takes for a lost device.
// Threads: AddLane one at a time, Prepare one at a time, Enqueue any; none waits for another. So a
// lane may be made while a registration waits for its first runs.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_CALLS_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_CALLS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver_api.h"

namespace gpushare::cuda {

class LibraryCalls {
 public:
  // Opens nothing. `api` must outlive the object.
  static std::unique_ptr<LibraryCalls> Make(const DriverApi& api);
  // The device's context must live still, and be current.
  ~LibraryCalls();
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;

  // A lane that library tasks may run on, with `sm_count` SMs. Makes its handles and workspace at
  // once where calls are prepared already, else at the first Prepare.
  absl::Status AddLane(core::LaneIndex lane, CUstream stream, int32_t sm_count);

  // Finds an algorithm for every SM count of the lanes, and runs the call once in every context, so
  // that its code is loaded before the first query (a load waits for the device).
  // Errors: INVALID_ARGUMENT the library refuses the shapes; UNAVAILABLE the library is not
  // installed; UNIMPLEMENTED this build lacks its headers; RESOURCE_EXHAUSTED device memory.
  absl::Status Prepare(const core::KernelDesc& kernel);

  // Allocates nothing, but for a convolution on operands that are new or were not used for long:
  // cuDNN's pack of their pointers (cudnn_convolution_graph.h). Any context of the device may be
  // current.
  absl::Status Enqueue(core::KernelId kernel, core::LaneIndex lane,
                       const core::LibraryArguments& arguments);

 private:
  class Impl;
  explicit LibraryCalls(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_CALLS_H_
