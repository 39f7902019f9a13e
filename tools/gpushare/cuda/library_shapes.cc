// Library calls with operands in device memory; see library_shapes.h.

#include "tools/gpushare/cuda/library_shapes.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tools/gpushare/cuda/kernels.h"
#include "tools/gpushare/workloads/library_shapes.h"

namespace gpushare::tool {

namespace {

// Operands for all shapes, each of which uses the first bytes. The bits of these numbers are also
// small and finite as half or single precision.
DeviceMemory Filled(int64_t words, uint32_t seed) {
  DeviceMemory memory(static_cast<size_t>(words) * sizeof(uint32_t));
  const auto halves = static_cast<uint64_t>(2 * words);
  CheckCuda(FillUniformBf16(memory.data(), halves, seed, 1, nullptr), "Filling an operand");
  CheckCuda(cudaDeviceSynchronize(), "Filling an operand");
  return memory;
}

}  // namespace

CudaLibraryShapes::CudaLibraryShapes(std::vector<LibraryShape> shapes)
    : shapes_(std::move(shapes)) {
  OperandElements most;  // in words of 4 bytes
  for (const LibraryShape& shape : shapes_) {
    const int64_t in_word = 4 / BytesOfElement(shape.call);
    const OperandElements own = ElementsOf(shape.call);
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
