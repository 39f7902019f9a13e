// Parameters of layer normalisation over rows:
//
//   out[r, i] = gamma[i] * (in[r, i] - mean of row r) / sqrt(variance of row r + epsilon) + beta[i]

#ifndef GPUSHARE_KERNELS_DNN_LAYER_NORM_H_
#define GPUSHARE_KERNELS_DNN_LAYER_NORM_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kLayerNormThreads = 256;
constexpr uint32_t kLayerNormRows = 4;  // that a block holds at a time, 4 floats a thread of each
constexpr uint32_t kLayerNormLengthMax = 4 * kLayerNormThreads;

struct LayerNormParams {
  const float* in;  // aligned to 16 bytes, as the other arrays
  const float* gamma;
  const float* beta;
  float* out;
  uint32_t ring;    // block task b works on the rows of slot b % ring
  uint32_t rows;    // of a block task; a multiple of kLayerNormRows
  uint32_t length;  // of a row; a multiple of 4, at most kLayerNormLengthMax
  float epsilon;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_LAYER_NORM_H_
