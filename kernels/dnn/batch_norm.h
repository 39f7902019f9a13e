// Parameters of batch normalisation as inference computes it, with the statistics of the training:
//
//   out[n, c, i] = gamma[c] * (in[n, c, i] - mean[c]) / sqrt(variance[c] + epsilon) + beta[c]

#ifndef GPUSHARE_KERNELS_DNN_BATCH_NORM_H_
#define GPUSHARE_KERNELS_DNN_BATCH_NORM_H_

#include "kernels/dnn/affine.h"

namespace gpushare::kernels {

struct BatchNormParams {
  AffineTensor tensor;
  const float* gamma;  // one a channel, as the others
  const float* beta;
  const float* mean;
  const float* variance;
  float epsilon;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_BATCH_NORM_H_
