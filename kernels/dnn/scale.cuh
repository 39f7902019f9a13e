// scale: bound by DRAM; a factor and a shift for each channel of an NCHW tensor.

#ifndef GPUSHARE_KERNELS_DNN_SCALE_CUH_
#define GPUSHARE_KERNELS_DNN_SCALE_CUH_

#include "kernels/dnn/affine.cuh"
#include "kernels/dnn/scale.h"

namespace gpushare::kernels {
namespace scale {

struct gpushare_scale {
  using Params = ScaleParams;
  using Shared = affine::Shared;
  struct State {};
  static constexpr int kThreads = kAffineThreads;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int kWorkersPerSm = 4;  // enough to keep DRAM busy, as in streaming

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared& shared, State&, Ctx& ctx) {
    affine::Run(params.tensor, shared, ctx, [&params](uint32_t channel) {
      return make_float2(params.gamma[channel], params.beta[channel]);
    });
  }
};
}  // namespace scale

using scale::gpushare_scale;

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_SCALE_CUH_
