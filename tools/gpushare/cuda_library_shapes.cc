// The table of library calls; see cuda_library_shapes.h.

#include "tools/gpushare/cuda_library_shapes.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "tools/gpushare/cuda_kernels.h"
#include "tools/gpushare/text.h"

namespace gpushare::tool {

namespace {

struct Matmul {
  int64_t m, n, k;
};

// Rows x columns x depth of a linear layer: rows are images or tokens.
constexpr Matmul kHalfMatmuls[] = {
    // BERT-base and GPT-2 small: 1 to 32 sequences of 128
    {128, 768, 768},
    {128, 3072, 768},
    {128, 768, 3072},
    {512, 768, 768},
    {512, 2304, 768},
    {512, 3072, 768},
    {512, 768, 3072},
    {1024, 2304, 768},
    {2048, 3072, 768},
    {2048, 768, 3072},
    {4096, 768, 768},
    {4096, 2304, 768},
    {4096, 3072, 768},
    {4096, 768, 3072},
    {4096, 50304, 768},
    // a decoder of 8B parameters: one to 64 new tokens, then a prompt of 512
    {1, 6144, 4096},
    {1, 4096, 4096},
    {1, 28672, 4096},
    {1, 4096, 14336},
    {8, 6144, 4096},
    {16, 4096, 4096},
    {16, 28672, 4096},
    {16, 4096, 14336},
    {64, 6144, 4096},
    {64, 28672, 4096},
    {512, 6144, 4096},
    {512, 4096, 4096},
    {512, 28672, 4096},
    {512, 4096, 14336},
    // training with plain layers, and squares
    {1792, 4096, 4096},
    {3072, 4096, 4096},
    {6144, 4096, 4096},
    {256, 256, 256},
    {512, 512, 512},
    {1024, 1024, 1024},
    {1536, 1536, 1536},
    {2048, 2048, 2048},
    {3072, 3072, 3072},
    {4096, 4096, 4096},
    {6144, 6144, 6144},
    {8192, 8192, 8192},
    // long and flat
    {128, 128, 16384},
    {256, 1024, 8192},
    {16384, 256, 256},
    {16384, 1024, 512},
    {300, 1000, 700},
    {777, 1555, 3111},
    {32, 1000, 2048},
};

constexpr Matmul kFloatMatmuls[] = {
    {128, 768, 768},   {512, 3072, 768},   {2048, 768, 3072},  {32, 1000, 2048},
    {512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
    {256, 1024, 8192}, {16384, 256, 256},  {777, 1555, 3111},  {1536, 1536, 1536},
};

struct Convolution {
  int64_t batch, channels, size, filters, filter, stride;
};

// Layers of ResNet-50, VGG-16 and DenseNet-121.
constexpr Convolution kConvolutions[] = {
    {1, 64, 56, 64, 3, 1},     {1, 128, 28, 128, 3, 1},   {1, 256, 14, 256, 3, 1},
    {1, 512, 7, 512, 3, 1},    {1, 64, 56, 256, 1, 1},    {1, 512, 28, 1024, 1, 2},
    {1, 1024, 14, 256, 1, 1},  {1, 2048, 7, 512, 1, 1},   {1, 64, 224, 64, 3, 1},
    {1, 256, 56, 256, 3, 1},   {1, 512, 28, 512, 3, 1},   {8, 64, 56, 64, 3, 1},
    {8, 128, 28, 128, 3, 1},   {8, 256, 14, 256, 3, 1},   {8, 512, 7, 512, 3, 1},
    {8, 256, 56, 64, 1, 1},    {8, 512, 28, 1024, 1, 2},  {8, 128, 56, 32, 3, 1},
    {32, 64, 56, 64, 3, 1},    {32, 128, 28, 128, 3, 1},  {32, 256, 14, 256, 3, 1},
    {32, 512, 7, 512, 3, 1},   {32, 64, 56, 256, 1, 1},   {32, 256, 56, 64, 1, 1},
    {32, 1024, 14, 256, 1, 1}, {32, 512, 28, 1024, 1, 2}, {16, 64, 112, 128, 3, 1},
    {16, 128, 112, 128, 3, 1}, {16, 256, 56, 256, 3, 1},  {16, 512, 14, 512, 3, 1},
};

struct Elements {
  int64_t a = 0, b = 0, d = 0;
};

Elements ElementsOf(const gpushare_library_call& call) {
  if (call.operation == GPUSHARE_LIBRARY_MATMUL) {
    return {call.m * call.k, call.k * call.n, call.m * call.n};
  }
  const int64_t side = (call.height + 2 * call.padding - call.filter_height) / call.stride + 1;
  return {call.batch * call.channels * call.height * call.width,
          call.filters * call.channels * call.filter_height * call.filter_width,
          call.batch * call.filters * side * side};
}

LibraryShape MatmulShape(const Matmul& one, gpushare_data_type type) {
  LibraryShape shape;
  shape.name = Format("matmul.%s.%lldx%lldx%lld", type == GPUSHARE_FLOAT32 ? "f32" : "f16",
                      static_cast<long long>(one.m), static_cast<long long>(one.n),
                      static_cast<long long>(one.k));
  shape.call.operation = GPUSHARE_LIBRARY_MATMUL;
  shape.call.type = type;
  shape.call.m = one.m;
  shape.call.n = one.n;
  shape.call.k = one.k;
  return shape;
}

LibraryShape ConvolutionShape(const Convolution& one) {
  LibraryShape shape;
  shape.name = Format("convolution.f16.%lldx%lldx%lld.%lldx%lld.s%lld",
                      static_cast<long long>(one.batch), static_cast<long long>(one.channels),
                      static_cast<long long>(one.size), static_cast<long long>(one.filters),
                      static_cast<long long>(one.filter), static_cast<long long>(one.stride));
  gpushare_library_call& call = shape.call;
  call.operation = GPUSHARE_LIBRARY_CONVOLUTION;
  call.type = GPUSHARE_FLOAT16;
  call.channels_last = 1;
  call.batch = one.batch;
  call.channels = one.channels;
  call.height = call.width = one.size;
  call.filters = one.filters;
  call.filter_height = call.filter_width = one.filter;
  call.padding = one.filter / 2;
  call.stride = one.stride;
  return shape;
}

// Every shape uses the first bytes. The bits of these numbers are also small and finite as half or
// single precision.
DeviceMemory Filled(int64_t words, uint32_t seed) {
  DeviceMemory memory(static_cast<size_t>(words) * sizeof(uint32_t));
  const auto halves = static_cast<uint64_t>(2 * words);
  CheckCuda(FillUniformBf16(memory.data(), halves, seed, 1, nullptr), "Filling an operand");
  CheckCuda(cudaDeviceSynchronize(), "Filling an operand");
  return memory;
}

}  // namespace

CudaLibraryShapes::CudaLibraryShapes() {
  for (const Matmul& one : kHalfMatmuls) shapes_.push_back(MatmulShape(one, GPUSHARE_FLOAT16));
  for (const Matmul& one : kFloatMatmuls) shapes_.push_back(MatmulShape(one, GPUSHARE_FLOAT32));
  for (const Convolution& one : kConvolutions) shapes_.push_back(ConvolutionShape(one));
  Elements most;  // in words of 4 bytes
  for (const LibraryShape& shape : shapes_) {
    const int64_t in_word = shape.call.type == GPUSHARE_FLOAT32 ? 1 : 2;
    const Elements own = ElementsOf(shape.call);
    most.a = std::max(most.a, own.a / in_word + 1);
    most.b = std::max(most.b, own.b / in_word + 1);
    most.d = std::max(most.d, own.d / in_word + 1);
  }
  a_ = Filled(most.a, 1);
  b_ = Filled(most.b, 2);
  d_ = Filled(most.d, 3);
  for (LibraryShape& shape : shapes_) {
    shape.arguments = {a_.data(), b_.data(), nullptr, d_.data(), 1.0F, 0.0F};
  }
}

}  // namespace gpushare::tool
