// convolution_benchmark: im2col and gemm_mma against cuDNN's convolution, over layers of ResNet-50
// and VGG-16 in bf16. Prints one JSON object: medians of alternating runs, and the share of im2col
// in the chain's time; Tacker converts a convolution where that costs less than 15 % (VIII-H).
//
//   convolution_benchmark [--repeats N] [--batch N]
//
// cuDNN runs the same layer in NHWC, its fastest layout for bf16, with 32 MB of workspace, on
// buffers of the same sizes: times are compared, not results (tests/kernels/convolution_test.cc
// has the reference). Where cuDNN is not installed its times are null.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/convolution_layers.h"
#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/tensor/convolution.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "src/cuda/library_backend.h"

namespace gpushare::kernels {
namespace {

constexpr int kWarmUps = 2;
constexpr double kConvertedBelow = 0.15;
constexpr int kNoDevice = 77;

using benchmarks::ConvolutionLayer;

ConvolutionShape ShapeOf(const ConvolutionLayer& layer, uint32_t batch) {
  ConvolutionShape shape;
  shape.batch = batch;
  shape.channels = shape.filters = layer.channels;
  shape.height = shape.width = layer.size;
  return shape;
}

// cuDNN's convolution of one layer, or the reason why there is none.
class CudnnLayer {
 public:
  ~CudnnLayer() {
    plan_.reset();
    if (handle_ != nullptr) backend_->DestroyHandle(handle_);
  }
  CudnnLayer(const CudnnLayer&) = delete;
  CudnnLayer& operator=(const CudnnLayer&) = delete;
  CudnnLayer() = default;

  absl::Status Make(const core::LibraryCall& call, CUstream_st* stream) {
    auto backend = cuda::OpenCudnn();
    if (!backend.ok()) return backend.status();
    backend_ = *std::move(backend);
    auto handle = backend_->MakeHandle(stream);
    if (!handle.ok()) return handle.status();
    handle_ = *handle;
    stream_ = stream;
    core::KernelDesc kernel;
    kernel.library_call = call;
    auto plan = backend_->MakePlan(handle_, kernel, 0);
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    const Status status = workspace_.Allocate(cuda::kWorkspaceBytes);
    return status.ok() ? absl::OkStatus() : absl::ResourceExhaustedError(status.message);
  }

  absl::Status Enqueue(const DeviceBuffer& input, const DeviceBuffer& weights,
                       const DeviceBuffer& output) {
    core::LibraryArguments arguments;
    arguments.a = input.data();
    arguments.b = weights.data();
    arguments.d = output.data();
    return plan_->Enqueue(handle_, stream_, workspace_.data(), arguments);
  }

 private:
  std::unique_ptr<cuda::LibraryBackend> backend_;
  std::unique_ptr<cuda::LibraryPlan> plan_;
  void* handle_ = nullptr;
  CUstream_st* stream_ = nullptr;
  DeviceBuffer workspace_;
};

struct Times {
  std::vector<double> im2col_ms;
  std::vector<double> gemm_ms;
  std::vector<double> chain_ms;
  std::vector<double> cudnn_ms;
};

struct Buffers {
  DeviceBuffer input, weights, output;

  Status Make(const ConvolutionShape& shape) {
    Status status = input.Allocate(shape.InputElements() * sizeof(uint16_t));
    if (status.ok()) status = weights.Allocate(shape.WeightElements() * sizeof(uint16_t));
    if (status.ok()) status = output.Allocate(shape.OutputElements() * sizeof(uint16_t));
    if (status.ok()) status = FillPortableInputs(&input, 1);
    if (status.ok()) status = FillPortableInputs(&weights, 2);
    return status;
  }
};

Status TimeChain(FormLauncher* launcher, const Convolution& convolution, EventTimer* timer,
                 double* ms) {
  timer->Begin(launcher->stream());
  const Status status = convolution.Enqueue(launcher);
  timer->End(launcher->stream());
  *ms = timer->Milliseconds();
  return status.ok() ? launcher->Wait() : status;
}

Status TimeCudnn(FormLauncher* launcher, CudnnLayer* cudnn, const Buffers& buffers,
                 EventTimer* timer, double* ms) {
  timer->Begin(launcher->stream());
  const absl::Status enqueued = cudnn->Enqueue(buffers.input, buffers.weights, buffers.output);
  timer->End(launcher->stream());
  *ms = timer->Milliseconds();
  if (enqueued.ok()) return launcher->Wait();
  Status status;
  status.code = -1;
  status.message = std::string(enqueued.message());
  return status;
}

// `cudnn`: null where it is not installed.
Status Measure(int repeats, FormLauncher* launcher, const Convolution& convolution,
               CudnnLayer* cudnn, const Buffers& buffers, Times* times) {
  EventTimer timer;
  for (int i = -kWarmUps; i < repeats; ++i) {
    double im2col_ms = 0;
    double gemm_ms = 0;
    double chain_ms = 0;
    double cudnn_ms = 0;
    Status status = TimeOriginal(launcher, convolution.im2col(), &timer, &im2col_ms);
    if (status.ok()) status = TimeOriginal(launcher, convolution.gemm(), &timer, &gemm_ms);
    if (status.ok()) status = TimeChain(launcher, convolution, &timer, &chain_ms);
    if (status.ok() && cudnn != nullptr) {
      status = TimeCudnn(launcher, cudnn, buffers, &timer, &cudnn_ms);
    }
    if (!status.ok()) return status;
    if (i < 0) continue;
    times->im2col_ms.push_back(im2col_ms);
    times->gemm_ms.push_back(gemm_ms);
    times->chain_ms.push_back(chain_ms);
    if (cudnn != nullptr) times->cudnn_ms.push_back(cudnn_ms);
  }
  return {};
}

void PrintRow(const ConvolutionLayer& layer, const ConvolutionShape& shape, const Times& times,
              bool first) {
  const double im2col_ms = Median(times.im2col_ms);
  const double gemm_ms = Median(times.gemm_ms);
  const double chain_ms = Median(times.chain_ms);
  const double share = im2col_ms / (im2col_ms + gemm_ms);
  const double operations =
      2.0 * static_cast<double>(shape.OutputElements()) * shape.WindowElements();
  std::printf("%s\n    {\"layer\": \"%s\", \"batch\": %u, \"gemm\": [%llu, %u, %u],",
              first ? "" : ",", layer.name, shape.batch,
              static_cast<unsigned long long>(shape.Pixels()), shape.filters,
              shape.WindowElements());
  std::printf(" \"im2col_ms\": %.4f, \"gemm_ms\": %.4f, \"chain_ms\": %.4f,", im2col_ms, gemm_ms,
              chain_ms);
  std::printf("\n     \"gemm_tflop_per_s\": %.1f, \"im2col_share\": %.4f, \"converted\": %s,",
              operations / gemm_ms * 1e-9, share, share < kConvertedBelow ? "true" : "false");
  if (times.cudnn_ms.empty()) {
    std::printf(" \"cudnn_ms\": null, \"chain_over_cudnn\": null}");
    return;
  }
  const double cudnn_ms = Median(times.cudnn_ms);
  std::printf(" \"cudnn_ms\": %.4f, \"chain_over_cudnn\": %.3f}", cudnn_ms, chain_ms / cudnn_ms);
}

Status RunLayer(const ConvolutionLayer& layer, uint32_t batch, int repeats, FormLauncher* launcher,
                bool first) {
  const ConvolutionShape shape = ShapeOf(layer, batch);
  Buffers buffers;
  Convolution convolution;
  Status status = buffers.Make(shape);
  if (status.ok()) {
    status = convolution.Make(shape, MmaConvolutionGemm(), buffers.input.data(),
                              buffers.weights.data(), buffers.output.data());
  }
  if (!status.ok()) return status;
  CudnnLayer cudnn;
  const absl::Status made = cudnn.Make(benchmarks::CallOf(layer, batch), launcher->stream());
  if (!made.ok()) std::fprintf(stderr, "%s\n", std::string(made.message()).c_str());
  Times times;
  status = Measure(repeats, launcher, convolution, made.ok() ? &cudnn : nullptr, buffers, &times);
  if (status.ok()) PrintRow(layer, shape, times, first);
  return status;
}

int Main(int argc, char** argv) {
  int repeats = 15;
  uint32_t batch = 32;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeats") == 0) repeats = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--batch") == 0) {
      batch = static_cast<uint32_t>(std::max(1, std::atoi(argv[i + 1])));
    }
  }
  FormLauncher launcher;
  Status status = launcher.Init();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return kNoDevice;
  }
  std::printf(
      "{\"benchmark\": \"convolution_benchmark\", \"sms\": %d, \"clock_mhz\": %.0f,"
      " \"repeats\": %d,\n  \"note\": \"medians of alternating runs; cuDNN in NHWC with %zu bytes "
      "of"
      " workspace\",\n  \"layers\": [",
      launcher.sms(), launcher.clock_mhz(), repeats, cuda::kWorkspaceBytes);
  bool failed = false;
  bool first = true;
  for (const ConvolutionLayer& layer : benchmarks::kConvolutionLayers) {
    status = RunLayer(layer, batch, repeats, &launcher, first);
    if (status.ok()) {
      first = false;
      continue;
    }
    failed = true;
    std::fprintf(stderr, "%s: %s\n", layer.name, status.message.c_str());
  }
  std::printf("]}\n");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace gpushare::kernels

int main(int argc, char** argv) { return gpushare::kernels::Main(argc, argv); }
