// Parameters of one step of stochastic gradient descent with momentum and weight decay, out of
// place:
//
//   new velocity = momentum * velocity + (gradient + decay * weight)
//   new weight   = weight - rate * new velocity

#ifndef GPUSHARE_KERNELS_DNN_SGD_H_
#define GPUSHARE_KERNELS_DNN_SGD_H_

#include <cstdint>

namespace gpushare::kernels {

constexpr uint32_t kSgdFloatsPerPass = 1024;  // 256 threads of 4

struct SgdParams {
  const float* weights;  // aligned to 16 bytes, as the other arrays
  const float* gradients;
  const float* velocities;
  float* new_weights;
  float* new_velocities;
  uint32_t ring;    // block task b works on chunk b % ring
  uint32_t passes;  // a chunk is passes * kSgdFloatsPerPass floats
  float rate;
  float momentum;
  float decay;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_DNN_SGD_H_
