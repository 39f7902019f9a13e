// Parameters of softmax over rows: out[r, i] = exp(in[r, i] - max) / the sum of these over row r.

#ifndef GPUSHARE_KERNELS_DNN_SOFTMAX_H_
#define GPUSHARE_KERNELS_DNN_SOFTMAX_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kSoftmaxVectors = 4;      // of 4 floats, that a lane holds of a row
constexpr uint32_t kSoftmaxLengthMax = 512;  // 32 lanes of these
constexpr uint32_t kSoftmaxWarps = 8;        // a row each at a time

struct SoftmaxParams {
  const float* in;  // aligned to 16 bytes, as out
  float* out;
  uint32_t ring;    // block task b works on the rows of slot b % ring
  uint32_t rows;    // of a block task; a multiple of kSoftmaxWarps keeps all warps busy
  uint32_t length;  // of a row; a multiple of 4, at most kSoftmaxLengthMax
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_SOFTMAX_H_
