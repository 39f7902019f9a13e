// The device code of kernels.h: a bf16 GELU and a seeded fill.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "tools/gpushare/cuda/kernels.h"

namespace gpushare::tool {

namespace {

__device__ float Gelu(float x) {
  constexpr float kSqrtTwoOverPi = 0.7978845608F;
  return 0.5F * x * (1.0F + tanhf(kSqrtTwoOverPi * (x + 0.044715F * x * x * x)));
}

__device__ uint32_t Gelu2(uint32_t pair) {
  __nv_bfloat162 values;
  memcpy(&values, &pair, sizeof(pair));
  const float2 x = __bfloat1622float2(values);
  values = __floats2bfloat162_rn(Gelu(x.x), Gelu(x.y));
  memcpy(&pair, &values, sizeof(pair));
  return pair;
}

__global__ void FillUniformKernel(__nv_bfloat16* out, uint64_t elements, uint32_t seed,
                                  float scale) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
       i += stride) {
    // MurmurHash3's finalizer.
    uint32_t h = static_cast<uint32_t>(i) * 0x9E3779B1U + static_cast<uint32_t>(i >> 32) +
                 seed * 0x85EBCA77U + 0x27D4EB2FU;
    h ^= h >> 16;
    h *= 0x85EBCA6BU;
    h ^= h >> 13;
    h *= 0xC2B2AE35U;
    h ^= h >> 16;
    const float unit = static_cast<float>(h >> 8) * (1.0F / 8388608.0F) - 1.0F;
    out[i] = __float2bfloat16(scale * unit);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kGeluThreads)
    gpushare_tool_gelu(const __grid_constant__ GeluParams params) {
  const uint64_t index = 8 * (static_cast<uint64_t>(blockIdx.x) * kGeluThreads + threadIdx.x);
  if (index >= params.elements) return;
  const auto* in = static_cast<const uint4*>(params.in);
  auto* out = static_cast<uint4*>(params.out);
  const uint4 x = in[index / 8];
  out[index / 8] = make_uint4(Gelu2(x.x), Gelu2(x.y), Gelu2(x.z), Gelu2(x.w));
}

int LaunchGelu(const GeluParams& params, void* stream) {
  gpushare_tool_gelu<<<GeluBlocks(params.elements), kGeluThreads, 0,
                       static_cast<cudaStream_t>(stream)>>>(params);
  return cudaGetLastError();
}

int GeluFunction(void** out_function) {
  cudaFunction_t function = nullptr;
  const cudaError_t code =
      cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&gpushare_tool_gelu));
  *out_function = function;
  return code;
}

int FillUniformBf16(void* out, uint64_t elements, uint32_t seed, float scale, void* stream) {
  constexpr uint32_t kBlocks = 1056;
  FillUniformKernel<<<kBlocks, 256, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<__nv_bfloat16*>(out), elements, seed, scale);
  return cudaGetLastError();
}

}  // namespace gpushare::tool
