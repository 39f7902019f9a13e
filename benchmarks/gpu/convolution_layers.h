// The layers that the convolution benchmarks run: of ResNet-50 and VGG-16, 3 x 3, stride 1, as many
// filters as channels. bf16, channels last.

#ifndef GPUSHARE_BENCHMARKS_GPU_CONVOLUTION_LAYERS_H_
#define GPUSHARE_BENCHMARKS_GPU_CONVOLUTION_LAYERS_H_

#include <cstdint>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernels/device_buffer.h"
#include "src/core/seams/library_call.h"

namespace gpushare::benchmarks {

struct ConvolutionLayer {
  const char* name;
  uint32_t channels;
  uint32_t size;  // rows and columns
};

inline constexpr ConvolutionLayer kConvolutionLayers[] = {
    {"resnet50 conv2", 64, 56}, {"resnet50 conv3", 128, 28}, {"resnet50 conv4", 256, 14},
    {"vgg16 conv2", 128, 112},  {"vgg16 conv3", 256, 56},    {"vgg16 conv4", 512, 28}};

inline core::LibraryCall CallOf(const ConvolutionLayer& layer, uint32_t batch) {
  core::LibraryCall call;
  call.operation = core::LibraryOperation::kConvolution;
  call.type = core::DataType::kBfloat16;
  call.channels_last = true;
  call.batch = batch;
  call.channels = call.filters = layer.channels;
  call.height = call.width = layer.size;
  call.filter_height = call.filter_width = 3;
  call.padding = 1;
  return call;
}

// The layer's device memory, not filled.
struct ConvolutionBuffers {
  explicit ConvolutionBuffers(const core::LibraryCall& call) {
    const int64_t pixels = call.batch * call.height * call.width;
    const int64_t window = call.channels * call.filter_height * call.filter_width;
    Make(input, pixels * call.channels);
    Make(weights, call.filters * window);
    Make(output, pixels * call.filters);
  }
  core::LibraryArguments operands() const {
    core::LibraryArguments operands = {.a = input.data(), .b = weights.data(), .d = output.data()};
    return operands;
  }

  kernels::DeviceBuffer input, weights, output;

 private:
  static void Make(kernels::DeviceBuffer& buffer, int64_t elements) {
    Require(buffer.Allocate(static_cast<size_t>(elements) * sizeof(uint16_t)));
  }
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_CONVOLUTION_LAYERS_H_
