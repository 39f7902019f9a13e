// A convolution by cuDNN: what a registered one becomes on a number of SMs. Included only where
// cudnn.h is.
//
// Two forms of it. The graph form (cudnn_convolution_graph.h) is told the number of SMs of the
// place and does alpha 1, beta 0 on aligned operands. The immediate function takes alpha and beta
// with each call, any operands, and knows no number of SMs: it does the calls that the graph form
// does not fit, and all where the graph interface has no engine. Where no engine takes the number,
// the graph form is told none. It goes first on the whole device, too: the immediate function
// spends 40 us of host time more on a call.
//
// Lanes with as many SMs share the plan, so calls come from several threads, and a graph form
// serves one at a time. There are kGraphs alike; a call takes one that is free, one that has its
// pack if it can, and one that finds none free takes the immediate function. Nobody waits. So two
// calls on the same operands may take different forms; their results agree to rounding.
//
// A graph form that fails where the immediate function then succeeds was refused by the SMs, not
// for the operands: it is not tried again.

#ifndef GPUSHARE_SRC_CUDA_CUDNN_CONVOLUTION_H_
#define GPUSHARE_SRC_CUDA_CUDNN_CONVOLUTION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/cudnn_common.h"
#include "src/cuda/library_backend.h"

namespace gpushare::cuda {

// What cuDNN is told of a place's SMs: nothing (0) on a place that is the whole device.
// `device_sms` 0: not known.
constexpr int32_t SmTarget(int32_t sm_count, int32_t device_sms) {
  return device_sms > 0 && sm_count >= device_sms ? 0 : sm_count;
}

// `api` outlives the plan. Errors: INVALID_ARGUMENT cuDNN has no algorithm for these shapes.
absl::StatusOr<std::unique_ptr<LibraryPlan>> MakeCudnnConvolution(const CudnnApi& api,
                                                                  cudnnHandle_t handle,
                                                                  const core::LibraryCall& call,
                                                                  int32_t sm_target);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDNN_CONVOLUTION_H_
