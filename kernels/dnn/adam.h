// Parameters of one step of Adam (Kingma and Ba, algorithm 1, with the corrections of the moments'
// bias folded into `rate` and `epsilon` as the end of their section 2 says), out of place:
//
//   new first  = decay_first * first + (1 - decay_first) * gradient
//   new second = decay_second * second + (1 - decay_second) * gradient^2
//   new weight = weight - rate * new first / (sqrt(new second) + epsilon)

#ifndef GPUSHARE_KERNELS_DNN_ADAM_H_
#define GPUSHARE_KERNELS_DNN_ADAM_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kAdamFloatsPerPass = 1024;  // 256 threads of 4

struct AdamParams {
  const float* weights;  // aligned to 16 bytes, as the other arrays
  const float* gradients;
  const float* first;   // moments
  const float* second;  // not negative
  float* new_weights;
  float* new_first;
  float* new_second;
  uint32_t ring;    // block task b works on chunk b % ring
  uint32_t passes;  // a chunk is passes * kAdamFloatsPerPass floats
  float rate;
  float epsilon;
  float decay_first;
  float decay_second;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_ADAM_H_
