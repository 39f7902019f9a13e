// Library calls on lanes: cuBLASLt matrix products and cuDNN operations
// (src/core/seams/library_call.h).
//
// Where in the flow: registration of a kernel calls Prepare; its launch calls Enqueue. The first
// Prepare that needs a library opens it; gpushare links neither. The first Prepare also makes a
// handle of each library in use and one workspace for each lane. So lanes share no state, and a
// launch allocates nothing (for the exception see Enqueue). Plans and first runs use handles and
// streams that no launch uses: a lane's stream may be captured, or run segments.
//
// Layouts:
// - matmul: row-major; d (m x n) = alpha a (m x k) b (k x n) + beta c. With transpose_a, a is
//   stored k x m. Batches are contiguous. float32 is computed in float32, not in TF32.
// - convolution: filters are [filters][channels / groups][height][width], or with channels_last
//   [filters][height][width][channels / groups].
// - pooling: the average counts the padding.
// - softmax: runs over the channels.
// - convolution, pooling, activation and softmax add only in place: if beta is not 0, c is d.
//
// Invariants: Enqueue never returns UNAVAILABLE, which the scheduler takes for a lost device.
// Threads: one thread at a time calls AddLane, one calls Prepare, any calls Enqueue. None waits for
// another, so a lane can be made while a registration waits for its first runs.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_CALLS_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class LibraryCalls {
 public:
  // Makes a stream in a place, for first runs.
  using MakeStream = std::function<absl::StatusOr<CUstream>(core::PlaceIndex)>;
  // Opens nothing. `api` must outlive the object.
  static std::unique_ptr<LibraryCalls> Make(const DriverApi& api, MakeStream make_stream);
  // The device's context must still exist and be current. May wait for all work on the device.
  ~LibraryCalls();
  LibraryCalls(const LibraryCalls&) = delete;
  LibraryCalls& operator=(const LibraryCalls&) = delete;

  // Adds a lane of a place of `sm_count` SMs for library tasks. If calls are already prepared,
  // makes the lane's handles and workspace now; otherwise the first Prepare makes them.
  absl::Status AddLane(core::LaneIndex lane, CUstream stream, core::PlaceIndex place,
                       int32_t sm_count);

  // Whether lanes of a place may go: once a call is prepared, its plans need their handles.
  bool MayRemoveLanes();
  // The lane has no call in flight and gets none.
  void RemoveLane(core::LaneIndex lane);

  // Of a kernel that is a library call. Finds an algorithm for each SM count of the lanes; for a
  // call that is not confinable, only for the whole device. Runs the call once in each context, so
  // that its code is loaded before the first query: loading code waits for the device. Errors:
  // INVALID_ARGUMENT if the library refuses the shapes; UNAVAILABLE if it is not installed;
  // UNIMPLEMENTED if this build lacks its headers; RESOURCE_EXHAUSTED without enough device memory.
  absl::Status Prepare(const core::KernelDesc& kernel);

  // Any context of the device may be current. Allocates nothing, except for a convolution on
  // operands that are new or long unused: cuDNN makes a pack of their pointers
  // (cudnn_convolution_graph.h).
  absl::Status Enqueue(core::KernelId kernel, core::LaneIndex lane,
                       const core::LibraryArguments& arguments);

 private:
  class Impl;
  explicit LibraryCalls(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_CALLS_H_
