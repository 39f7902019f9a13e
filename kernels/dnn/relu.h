// Parameters of the ReLU kernel: out = max(in, 0).

#ifndef GPUSHARE_KERNELS_DNN_RELU_H_
#define GPUSHARE_KERNELS_DNN_RELU_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kReluUnroll = 4;            // 16-byte loads in flight a thread
constexpr uint32_t kReluFloatsPerPass = 1024;  // 256 threads of 4

struct ReluParams {
  const float* in;  // aligned to 16 bytes, as out
  float* out;
  uint32_t ring;    // block task b works on chunk b % ring
  uint32_t passes;  // a chunk is passes * kReluFloatsPerPass floats; a multiple of kReluUnroll
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_RELU_H_
