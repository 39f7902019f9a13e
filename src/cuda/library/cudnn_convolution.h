// A cuDNN convolution, prepared for a number of SMs. Only files that have cudnn.h include it.
//
// It has two forms. The graph form (cudnn_convolution_graph.h) gets the SM count of the place; it
// handles alpha 1, beta 0 and aligned operands. The immediate function takes any alpha, beta and
// operands, but no SM count. It runs every call that the graph form does not handle, and all calls
// if the graph interface has no engine.
//
// If no engine accepts an SM count, the graph form runs without one. The graph form is also
// preferred on the whole device: the immediate function spends 40 us more of host time on a call.
//
// Lanes with the same SM count share a plan, so several threads may call it at once, and a graph
// form serves one at a time. There are kGraphs equal copies. A call takes a free copy, preferably
// one that already keeps a pack of its pointers. A call that finds no free copy takes the immediate
// function, so no call waits. Two calls on the same operands may therefore take different forms;
// their results agree to rounding.
//
// If the graph form fails and the immediate function then succeeds, the SMs refused the graph form,
// not the operands. It is not tried again.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_CONVOLUTION_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_CONVOLUTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/library/cudnn_common.h"
#include "src/cuda/library/library_backend.h"

namespace gpushare::cuda {

// The SM count that cuDNN gets: 0 (none) for the whole device. `device_sms` 0 means unknown.
constexpr int32_t SmTarget(int32_t sm_count, int32_t device_sms) {
  return device_sms > 0 && sm_count >= device_sms ? 0 : sm_count;
}

// `api` must outlive the plan.
// Errors: INVALID_ARGUMENT if cuDNN has no algorithm for these shapes.
absl::StatusOr<std::unique_ptr<LibraryPlan>> MakeCudnnConvolution(const CudnnApi& api,
                                                                  cudnnHandle_t handle,
                                                                  const core::LibraryCall& call,
                                                                  int32_t sm_target);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_CONVOLUTION_H_
