// The variants of every body of this folder.

#include <gpushare/device/variants.cuh>

#include "kernels/dnn/adam.cuh"
#include "kernels/dnn/batch_norm.cuh"
#include "kernels/dnn/im2col.cuh"
#include "kernels/dnn/layer_norm.cuh"
#include "kernels/dnn/pooling.cuh"
#include "kernels/dnn/relu.cuh"
#include "kernels/dnn/scale.cuh"
#include "kernels/dnn/sgd.cuh"
#include "kernels/dnn/softmax.cuh"

namespace gpushare::kernels {

GPUSHARE_KERNEL(gpushare_adam);
GPUSHARE_KERNEL(gpushare_batch_norm);
GPUSHARE_KERNEL(gpushare_im2col);
GPUSHARE_KERNEL(gpushare_im2col_float);
GPUSHARE_KERNEL(gpushare_layer_norm);
GPUSHARE_KERNEL(gpushare_pooling);
GPUSHARE_KERNEL(gpushare_relu);
GPUSHARE_KERNEL(gpushare_scale);
GPUSHARE_KERNEL(gpushare_sgd);
GPUSHARE_KERNEL(gpushare_softmax);

}  // namespace gpushare::kernels
