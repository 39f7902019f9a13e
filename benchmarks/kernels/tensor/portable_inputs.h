// Seeded bf16 inputs of the portable Tensor-core kernels, which the GPU and the CPU compute alike.
//
// Values are odd multiples of 2^-8 in (-1, 1): all eight bits of bf16's significand are in use. A
// product is a multiple of 2^-16, so float32 adds them without rounding as long as sums stay below
// 2^8, and the reference differs from the kernel by the rounding of the result alone.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_TENSOR_PORTABLE_INPUTS_H_
#define GPUSHARE_BENCHMARKS_KERNELS_TENSOR_PORTABLE_INPUTS_H_

#include <cstdint>

#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/hash.h"

namespace gpushare::kernels {

GPUSHARE_HOST_DEVICE inline float PortableInput(uint32_t seed, uint32_t index) {
  constexpr float kUnit = 1.0F / 256.0F;
  const int odd = static_cast<int>(Hash(seed, index) >> 24) * 2 - 255;
  return static_cast<float>(odd) * kUnit;
}

// Value i of the buffer is PortableInput(seed, i) as bf16. Blocks.
Status FillPortableInputs(DeviceBuffer* buffer, uint32_t seed);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_TENSOR_PORTABLE_INPUTS_H_
