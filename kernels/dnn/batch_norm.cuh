// batch_norm: bound by DRAM; the four numbers of a channel are folded into two once a plane.

#ifndef GPUSHARE_KERNELS_DNN_BATCH_NORM_CUH_
#define GPUSHARE_KERNELS_DNN_BATCH_NORM_CUH_

#include "kernels/dnn/affine.cuh"
#include "kernels/dnn/batch_norm.h"

namespace gpushare::kernels {
namespace batch_norm {

struct gpushare_batch_norm {
  using Params = BatchNormParams;
  using Shared = affine::Shared;
  struct State {};
  static constexpr int kThreads = kAffineThreads;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // enough to keep DRAM busy, as in streaming

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    affine::Run(params.tensor, shared, ctx, [&params](uint32_t channel) {
      const float factor = params.gamma[channel] / sqrtf(params.variance[channel] + params.epsilon);
      return make_float2(factor, fmaf(-params.mean[channel], factor, params.beta[channel]));
    });
  }
};
}  // namespace batch_norm

using batch_norm::gpushare_batch_norm;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_BATCH_NORM_CUH_
