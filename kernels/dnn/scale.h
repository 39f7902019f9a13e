// Parameters of the scale layer: out[n, c, i] = gamma[c] * in[n, c, i] + beta[c].

#ifndef GPUSHARE_KERNELS_DNN_SCALE_H_
#define GPUSHARE_KERNELS_DNN_SCALE_H_

#include "kernels/dnn/affine.h"

namespace gpushare::kernels {

struct ScaleParams {
  AffineTensor tensor;
  const float* gamma;  // one a channel
  const float* beta;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_SCALE_H_
