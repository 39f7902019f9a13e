// convolution_benchmark: im2col and gemm_mma against cuDNN's convolution, over layers of ResNet-50
// and VGG-16 in bf16. Prints one JSON object: medians of alternating runs, and the share of im2col
// in the chain's time; Tacker converts a convolution where that costs less than 15 % (VIII-H).
//
//   convolution_benchmark [--repeats N] [--batch N]
//
// cuDNN runs the same layer in NHWC, its fastest layout for bf16, with 32 MB of workspace, on
// buffers of the same sizes: times are compared, not results (tests/kernels/convolution_test.cc
// has the reference). Where cuDNN is not installed its times are null.

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/convolution_layers.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_library.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/tensor/convolution.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Convolution;
using kernels::ConvolutionShape;
using kernels::FormLauncher;

constexpr int kWarmUps = 2;
constexpr double kConvertedBelow = 0.15;

ConvolutionShape ShapeOf(const ConvolutionLayer& layer, uint32_t batch) {
  ConvolutionShape shape;
  shape.batch = batch;
  shape.channels = shape.filters = layer.channels;
  shape.height = shape.width = layer.size;
  return shape;
}

struct Times {
  std::vector<double> im2col_ms;
  std::vector<double> gemm_ms;
  std::vector<double> chain_ms;
  std::vector<double> cudnn_ms;
};

// `enqueue_cudnn`: empty where it is not installed.
Times Measure(int repeats, FormLauncher& launcher, const Convolution& convolution,
              const std::function<void()>& enqueue_cudnn) {
  EventTimer timer;
  Times times;
  for (int i = -kWarmUps; i < repeats; ++i) {
    if (i == 0) times = {};
    times.im2col_ms.push_back(TimeOriginal(timer, launcher, convolution.im2col()));
    times.gemm_ms.push_back(TimeOriginal(timer, launcher, convolution.gemm()));
    times.chain_ms.push_back(
        timer.Ms(launcher.stream(), [&] { Require(convolution.Enqueue(&launcher)); }));
    if (enqueue_cudnn) times.cudnn_ms.push_back(timer.Ms(launcher.stream(), enqueue_cudnn));
  }
  return times;
}

Json RowJson(const ConvolutionLayer& layer, const ConvolutionShape& shape, const Times& times) {
  const double im2col_ms = Median(times.im2col_ms);
  const double gemm_ms = Median(times.gemm_ms);
  const double chain_ms = Median(times.chain_ms);
  const double cudnn_ms = Median(times.cudnn_ms);
  const double share = im2col_ms / (im2col_ms + gemm_ms);
  const double operations =
      2.0 * static_cast<double>(shape.OutputElements()) * shape.WindowElements();
  const bool has_cudnn = !times.cudnn_ms.empty();
  return {{"layer", layer.name},
          {"batch", shape.batch},
          {"gemm", Json::array({shape.Pixels(), shape.filters, shape.WindowElements()})},
          {"im2col_ms", Rounded(im2col_ms, 4)},
          {"gemm_ms", Rounded(gemm_ms, 4)},
          {"chain_ms", Rounded(chain_ms, 4)},
          {"gemm_tflop_per_s", Rounded(operations / gemm_ms * 1e-9, 1)},
          {"im2col_share", Rounded(share, 4)},
          {"converted", share < kConvertedBelow},
          {"cudnn_ms", has_cudnn ? Rounded(cudnn_ms, 4) : Json(nullptr)},
          {"chain_over_cudnn", has_cudnn ? Rounded(chain_ms / cudnn_ms, 3) : Json(nullptr)}};
}

// `cudnn`: null where it is not installed.
Json RunLayer(const ConvolutionLayer& layer, uint32_t batch, int repeats, FormLauncher& launcher,
              GpuLibrary* cudnn) {
  const ConvolutionShape shape = ShapeOf(layer, batch);
  const core::LibraryCall call = CallOf(layer, batch);
  ConvolutionBuffers buffers(call);
  Require(kernels::FillPortableInputs(&buffers.input, 1));
  Require(kernels::FillPortableInputs(&buffers.weights, 2));
  Convolution convolution;
  Require(convolution.Make(shape, kernels::MmaConvolutionGemm(), buffers.input.data(),
                           buffers.weights.data(), buffers.output.data()));
  GpuLibrary::Planned planned;
  std::function<void()> enqueue_cudnn;
  if (cudnn != nullptr &&
      Attempt(layer.name, [&] { planned = cudnn->Plan(call, launcher.stream(), 0); })) {
    enqueue_cudnn = [&] { cudnn->Enqueue(planned, buffers.operands()); };
  }
  return RowJson(layer, shape, Measure(repeats, launcher, convolution, enqueue_cudnn));
}

int Run(Arguments& given) {
  const int repeats = given.Number("--repeats", 15, 1);
  const auto batch = static_cast<uint32_t>(given.Number("--batch", 32, 1));
  given.Finish();
  FormLauncher launcher;
  Require(launcher.Init(), kNoGpu);
  Report report({{"benchmark", "convolution_benchmark"},
                 {"sms", launcher.sms()},
                 {"clock_mhz", Rounded(launcher.clock_mhz(), 0)},
                 {"repeats", repeats},
                 {"note", "medians of alternating runs; cuDNN in NHWC with " +
                              std::to_string(cuda::kWorkspaceBytes) + " bytes of workspace"}},
                "layers");
  std::unique_ptr<GpuLibrary> cudnn;  // null, with a line on stderr, where it is not installed
  Attempt("cuDNN", [&] { cudnn = std::make_unique<GpuLibrary>(GpuLibrary::Kind::kCudnn); });
  bool right = true;
  for (const ConvolutionLayer& layer : kConvolutionLayers) {
    right = Attempt(layer.name,
                    [&] { report.Row(RunLayer(layer, batch, repeats, launcher, cudnn.get())); }) &&
            right;
  }
  report.End();
  return right ? 0 : kFailed;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("convolution_benchmark", argc, argv, gpushare::benchmarks::Run);
}
