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
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/convolution_layers.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "kernels/tensor/convolution.h"
#include "src/cuda/library_backend.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Convolution;
using kernels::ConvolutionShape;
using kernels::DeviceBuffer;
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

struct Buffers {
  DeviceBuffer input, weights, output;

  explicit Buffers(const ConvolutionShape& shape) {
    Require(input.Allocate(shape.InputElements() * sizeof(uint16_t)));
    Require(weights.Allocate(shape.WeightElements() * sizeof(uint16_t)));
    Require(output.Allocate(shape.OutputElements() * sizeof(uint16_t)));
    Require(kernels::FillPortableInputs(&input, 1));
    Require(kernels::FillPortableInputs(&weights, 2));
  }
};

// cuDNN's convolution of one layer. Fails where cuDNN is not installed.
class CudnnLayer {
 public:
  CudnnLayer(const core::LibraryCall& call, CUstream_st* stream, const Buffers& buffers)
      : backend_(Take(cuda::OpenCudnn())),
        handle_(Take(backend_->MakeHandle(stream))),
        stream_(stream) {
    core::KernelDesc kernel;
    kernel.library_call = call;
    plan_ = Take(backend_->MakePlan(handle_, kernel, 0));
    Require(workspace_.Allocate(cuda::kWorkspaceBytes));
    arguments_.a = buffers.input.data();
    arguments_.b = buffers.weights.data();
    arguments_.d = buffers.output.data();
  }
  ~CudnnLayer() {
    plan_.reset();
    backend_->DestroyHandle(handle_);
  }
  CudnnLayer(const CudnnLayer&) = delete;
  CudnnLayer& operator=(const CudnnLayer&) = delete;

  void Enqueue() { Require(plan_->Enqueue(handle_, stream_, workspace_.data(), arguments_)); }

 private:
  std::unique_ptr<cuda::LibraryBackend> backend_;
  void* handle_;
  std::unique_ptr<cuda::LibraryPlan> plan_;
  CUstream_st* stream_;
  DeviceBuffer workspace_;
  core::LibraryArguments arguments_;
};

// Null, with a line on stderr, where there is no cuDNN.
std::unique_ptr<CudnnLayer> MakeCudnn(const core::LibraryCall& call, CUstream_st* stream,
                                      const Buffers& buffers) {
  try {
    return std::make_unique<CudnnLayer>(call, stream, buffers);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return nullptr;
  }
}

struct Times {
  std::vector<double> im2col_ms;
  std::vector<double> gemm_ms;
  std::vector<double> chain_ms;
  std::vector<double> cudnn_ms;
};

// `cudnn`: null where it is not installed.
Times Measure(int repeats, FormLauncher& launcher, const Convolution& convolution,
              CudnnLayer* cudnn) {
  EventTimer timer;
  Times times;
  for (int i = -kWarmUps; i < repeats; ++i) {
    if (i == 0) times = {};
    times.im2col_ms.push_back(TimeOriginal(timer, launcher, convolution.im2col()));
    times.gemm_ms.push_back(TimeOriginal(timer, launcher, convolution.gemm()));
    times.chain_ms.push_back(
        timer.Ms(launcher.stream(), [&] { Require(convolution.Enqueue(&launcher)); }));
    if (cudnn == nullptr) continue;
    times.cudnn_ms.push_back(timer.Ms(launcher.stream(), [&] { cudnn->Enqueue(); }));
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

Json RunLayer(const ConvolutionLayer& layer, uint32_t batch, int repeats, FormLauncher& launcher) {
  const ConvolutionShape shape = ShapeOf(layer, batch);
  const Buffers buffers(shape);
  Convolution convolution;
  Require(convolution.Make(shape, kernels::MmaConvolutionGemm(), buffers.input.data(),
                           buffers.weights.data(), buffers.output.data()));
  const auto cudnn = MakeCudnn(CallOf(layer, batch), launcher.stream(), buffers);
  return RowJson(layer, shape, Measure(repeats, launcher, convolution, cudnn.get()));
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
  bool failed = false;
  for (const ConvolutionLayer& layer : kConvolutionLayers) {
    try {
      report.Row(RunLayer(layer, batch, repeats, launcher));
    } catch (const Failure& failure) {
      failed = true;
      std::fprintf(stderr, "%s: %s\n", layer.name, failure.what());
    }
  }
  report.End();
  return failed ? kFailed : 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("convolution_benchmark", argc, argv, gpushare::benchmarks::Run);
}
