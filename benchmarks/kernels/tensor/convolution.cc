#include "benchmarks/kernels/tensor/convolution.h"

#include <string>

#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "benchmarks/kernels/workload_base.h"

extern "C" {
int gpushare_gemm_mma_variants(gpushare_kernel_variants* out);
int gpushare_im2col_variants(gpushare_kernel_variants* out);
}

namespace gpushare::kernels {
namespace {

constexpr uint32_t kVectorElements = 8;         // 16 bytes of bf16
constexpr uint64_t kElementsMax = 0xFFFFFFFEU;  // one number of 32 bits is kIm2colOutside

Status Refused(const ConvolutionShape& shape, const std::string& why) {
  return InvalidOption("A convolution of " + std::to_string(shape.batch) + " x " +
                       std::to_string(shape.channels) + " x " + std::to_string(shape.height) +
                       " x " + std::to_string(shape.width) + " by " +
                       std::to_string(shape.filters) + " filters " + why);
}

// A block task makes one tile: 11 us at full occupancy on the reference GPU.
Im2colParams WindowsOf(const ConvolutionShape& shape, const void* input, void* windows) {
  const Im2colShape tensor = {shape.batch, shape.channels, shape.height, shape.width};
  return {input, windows, tensor, Im2colTiles(tensor), 1};
}

}  // namespace

Status CheckConvolution(const ConvolutionShape& shape) {
  if (shape.Pixels() == 0 || shape.channels == 0 || shape.filters == 0) {
    return Refused(shape, "has a size of 0.");
  }
  if (shape.channels % kIm2colChannels != 0) {
    return Refused(shape, "has channels that are no multiple of " +
                              std::to_string(kIm2colChannels) + ", and im2col takes so many.");
  }
  if (shape.filters % kVectorElements != 0) {
    return Refused(shape, "has filters that are no multiple of " + std::to_string(kVectorElements) +
                              ", which are 16 bytes.");
  }
  const uint64_t elements = shape.Pixels() * shape.WindowElements();
  if (elements > kElementsMax) {
    return Refused(shape, "has windows of " + std::to_string(elements) +
                              " elements, and the limit is " + std::to_string(kElementsMax) + ".");
  }
  return {};
}

ConvolutionGemm MmaConvolutionGemm() { return {gpushare_gemm_mma_variants, MakeGemmMmaParams}; }

Status Convolution::Make(const ConvolutionShape& shape, const ConvolutionGemm& gemm,
                         const void* input, const void* weights, void* output) {
  Status status = CheckConvolution(shape);
  if (status.ok()) {
    status = windows_.Allocate(shape.Pixels() * shape.WindowElements() * sizeof(uint16_t));
  }
  if (status.ok()) status = CudaStatus(gpushare_im2col_variants(&im2col_.variants), "im2col");
  if (status.ok()) status = CudaStatus(gemm.variants(&gemm_.variants), "the convolution's GEMM");
  if (!status.ok()) return status;
  im2col_params_ = WindowsOf(shape, input, windows_.data());
  im2col_.params = &im2col_params_;
  im2col_.grid = {im2col_params_.ring, 1, 1};
  GemmProblem problem;
  problem.m = static_cast<int>(shape.Pixels());
  problem.n = static_cast<int>(shape.filters);
  problem.k = static_cast<int>(shape.WindowElements());
  problem.a = windows_.data();
  problem.b = weights;
  problem.c = output;
  status = gemm.make_params(problem, &gemm_params_, &gemm_.grid);
  gemm_.params = gemm_params_.data();
  return status;
}

Status Convolution::Enqueue(FormLauncher* launcher) const {
  const Status status = launcher->LaunchOriginal(im2col_);
  return status.ok() ? launcher->LaunchOriginal(gemm_) : status;
}

double ConvolutionReference(const ConvolutionShape& shape, uint32_t input_seed,
                            uint32_t weight_seed, uint64_t index) {
  const auto filter = static_cast<uint32_t>(index % shape.filters);
  const auto pixel = static_cast<uint32_t>(index / shape.filters);
  const uint32_t x = pixel % shape.width;
  const uint32_t y = pixel / shape.width % shape.height;
  const uint32_t image = pixel / shape.width / shape.height;
  uint32_t weight = filter * shape.WindowElements();
  double sum = 0;
  for (uint32_t channel = 0; channel < shape.channels; ++channel) {
    const uint32_t plane = image * shape.channels + channel;
    for (uint32_t r = 0; r < kIm2colSide; ++r) {
      for (uint32_t s = 0; s < kIm2colSide; ++s, ++weight) {
        // Above and left of the image these wrap to large numbers.
        const uint32_t row = y + r - 1;
        const uint32_t column = x + s - 1;
        if (row >= shape.height || column >= shape.width) continue;
        const uint32_t at = (plane * shape.height + row) * shape.width + column;
        sum += static_cast<double>(PortableInput(input_seed, at)) *
               static_cast<double>(PortableInput(weight_seed, weight));
      }
    }
  }
  return sum;
}

}  // namespace gpushare::kernels
