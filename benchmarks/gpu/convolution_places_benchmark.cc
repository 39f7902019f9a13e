// convolution_places_benchmark: cuDNN's convolution on part of the GPU by the graph interface,
// whose engine is told how many SMs it has, against the immediate function, which is not; on the
// whole GPU neither is told. Layers of ResNet-50 and VGG-16 in bf16, NHWC, batch 32. Prints one
// JSON object: medians of alternating runs, of one call and of a call among kQueued. The graph's
// are null where no engine takes the number.
//
//   convolution_places_benchmark [--repeats N] [--sms A,B]

#include <cudnn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/convolution_layers.h"
#include "benchmarks/gpu/form_timer.h"
#include "src/cuda/context.h"
#include "src/cuda/cudnn_convolution.h"
#include "src/cuda/cudnn_convolution_graph.h"
#include "src/cuda/driver.h"
#include "src/cuda/places.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kWarmUps = 3;
constexpr int kNoDevice = 77;
constexpr int kQueued = 20;

constexpr uint32_t kBatch = 32;

// A part of the GPU with a stream and a cuDNN handle.
class Part {
 public:
  Part(const cuda::CudnnApi& cudnn, const cuda::Context& context, const cuda::Places& places)
      : cudnn_(cudnn), context_(context), places_(places) {}
  ~Part() {
    if (place_.context == nullptr) return;
    Push();
    for (const CUdeviceptr address : memory_) context_.api().cuMemFree(address);
    if (handle_ != nullptr) cudnn_.cudnnDestroy(handle_);
    if (stream_ != nullptr) context_.api().cuStreamDestroy(stream_);
    Pop();
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  absl::Status Make(core::PlaceIndex index) {
    place_ = places_.place(index);
    absl::StatusOr<CUstream> stream = places_.MakeStream(index, 0);
    if (!stream.ok()) return stream.status();
    stream_ = *stream;
    Push();
    const cudnnStatus_t made = cudnn_.cudnnCreate(&handle_);
    const cudnnStatus_t set = cudnn_.cudnnSetStream(handle_, stream_);
    Pop();
    return made == CUDNN_STATUS_SUCCESS && set == CUDNN_STATUS_SUCCESS
               ? absl::OkStatus()
               : absl::InternalError("cuDNN makes no handle in the part.");
  }

  void Push() const { context_.api().cuCtxPushCurrent(place_.context); }
  void Pop() const {
    CUcontext popped = nullptr;
    context_.api().cuCtxPopCurrent(&popped);
  }
  int32_t sms() const { return place_.sms; }
  cudnnHandle_t handle() const { return handle_; }
  CUstream stream() const { return stream_; }

  void* Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    if (context_.api().cuMemAlloc(&address, bytes) != CUDA_SUCCESS) return nullptr;
    memory_.push_back(address);
    context_.api().cuMemsetD8Async(address, 0, bytes, stream_);
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  }

 private:
  const cuda::CudnnApi& cudnn_;
  const cuda::Context& context_;
  const cuda::Places& places_;
  cuda::Place place_;
  CUstream stream_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

std::vector<int> SizesOf(const char* text) {
  std::vector<int> sizes;
  for (const char* at = text; at != nullptr && *at != 0;) {
    sizes.push_back(std::atoi(at));
    at = std::strchr(at, ',');
    if (at != nullptr) ++at;
  }
  return sizes;
}

struct Times {
  std::vector<double> one_ms;
  std::vector<double> queued_ms;
};

// Milliseconds of a call, of `calls` on the part's stream.
template <class Enqueue>
absl::Status Time(const Part& part, kernels::EventTimer& timer, const Enqueue& enqueue, int calls,
                  std::vector<double>* ms) {
  timer.Begin(part.stream());
  absl::Status status;
  for (int i = 0; i < calls && status.ok(); ++i) status = enqueue();
  timer.End(part.stream());
  const double each_ms = timer.Milliseconds() / calls;
  if (ms != nullptr) ms->push_back(each_ms);
  return status;
}

template <class Enqueue>
absl::Status TimeBoth(const Part& part, kernels::EventTimer& timer, const Enqueue& enqueue,
                      Times* times) {
  absl::Status status = Time(part, timer, enqueue, 1, times == nullptr ? nullptr : &times->one_ms);
  if (!status.ok()) return status;
  return Time(part, timer, enqueue, kQueued, times == nullptr ? nullptr : &times->queued_ms);
}

// `graph_times` stays empty where no engine takes the number.
absl::Status Measure(const cuda::CudnnApi& cudnn, Part& part, const ConvolutionLayer& layer,
                     int device_sms, int repeats, Times& immediate_times, Times& graph_times) {
  const core::LibraryCall call = CallOf(layer, kBatch);
  const auto plan = cuda::MakeCudnnConvolution(cudnn, part.handle(), call, 0);
  if (!plan.ok()) return plan.status();
  cuda::ConvolutionGraph graph(cudnn, call);
  const cuda::CudnnDimensions output = {cuda::Int(call.batch), cuda::Int(call.filters),
                                        cuda::Int(call.height), cuda::Int(call.width)};
  const bool has_graph =
      graph.Make(part.handle(), output, cuda::SmTarget(part.sms(), device_sms)).ok();
  const cuda::OperandBytes bytes = (*plan)->operands();
  core::LibraryArguments arguments;
  arguments.a = part.Allocate(bytes.a);
  arguments.b = part.Allocate(bytes.b);
  arguments.d = part.Allocate(bytes.d);
  void* const workspace = part.Allocate(cuda::kWorkspaceBytes);
  if (arguments.a == nullptr || arguments.b == nullptr || arguments.d == nullptr ||
      workspace == nullptr) {
    return absl::ResourceExhaustedError("The layer's operands do not fit into the GPU's memory.");
  }
  arguments.alpha = 2;  // what only the immediate function does
  kernels::EventTimer timer;
  for (int i = -kWarmUps; i < repeats; ++i) {
    absl::Status status = TimeBoth(
        part, timer,
        [&] { return (*plan)->Enqueue(part.handle(), part.stream(), workspace, arguments); },
        i < 0 ? nullptr : &immediate_times);
    if (status.ok() && has_graph) {
      status = TimeBoth(
          part, timer, [&] { return graph.Execute(part.handle(), workspace, arguments); },
          i < 0 ? nullptr : &graph_times);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Print(int32_t sms, const ConvolutionLayer& layer, const Times& immediate, const Times& graph,
           bool first) {
  const double one_ms = kernels::Median(immediate.one_ms);
  const double queued_ms = kernels::Median(immediate.queued_ms);
  std::printf(
      "%s\n    {\"sms\": %d, \"layer\": \"%s\", \"immediate_ms\": %.4f,"
      " \"immediate_queued_ms\": %.4f,",
      first ? "" : ",", sms, layer.name, one_ms, queued_ms);
  if (graph.one_ms.empty()) {
    std::printf(" \"graph_ms\": null, \"graph_queued_ms\": null, \"queued_ratio\": null}");
    return;
  }
  const double graph_queued_ms = kernels::Median(graph.queued_ms);
  std::printf(" \"graph_ms\": %.4f, \"graph_queued_ms\": %.4f, \"queued_ratio\": %.3f}",
              kernels::Median(graph.one_ms), graph_queued_ms, graph_queued_ms / queued_ms);
}

absl::Status Run(int repeats, const std::vector<int>& sizes) {
  absl::StatusOr<cuda::CudnnApi> cudnn = cuda::OpenCudnnApi();
  if (!cudnn.ok()) return cudnn.status();
  absl::StatusOr<std::unique_ptr<cuda::Context>> context = cuda::Context::Open(0);
  if (!context.ok()) return context.status();
  const cuda::ScopedContext current(**context);
  cuda::Places places(**context);
  const int sms = (*context)->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (absl::Status status = places.Split(sms); !status.ok()) return status;
  std::printf(
      "{\"benchmark\": \"convolution_places_benchmark\", \"sms\": %d, \"repeats\": %d,\n"
      "  \"note\": \"cuDNN, bf16, NHWC, batch 32, 3 x 3; medians of alternating runs\",\n"
      "  \"rows\": [",
      sms, repeats);
  bool first = true;
  for (const int size : sizes) {
    core::PlaceIndex place = core::kWholeDevice;
    if (size < sms) {
      core::PlaceSpec spec;
      spec.groups = std::clamp(size / std::max(1, places.granularity()), 1, places.groups());
      const absl::StatusOr<core::PlaceIndex> made = places.Create(spec);
      if (!made.ok()) return made.status();
      place = *made;
    }
    for (const ConvolutionLayer& layer : kConvolutionLayers) {
      Part part(*cudnn, **context, places);
      absl::Status status = part.Make(place);
      Times immediate;
      Times graph;
      if (status.ok()) {
        part.Push();
        status = Measure(*cudnn, part, layer, sms, repeats, immediate, graph);
        part.Pop();
      }
      if (!status.ok()) return status;
      Print(part.sms(), layer, immediate, graph, first);
      first = false;
    }
  }
  std::printf("]}\n");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  int repeats = 15;
  std::vector<int> sizes = {32, 64, 96, 120, 132};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeats") == 0) repeats = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--sms") == 0) sizes = SizesOf(argv[i + 1]);
  }
  if (const absl::Status device = cuda::CheckDevice(cuda::SystemDriver(), 0); !device.ok()) {
    std::fprintf(stderr, "%s\n", std::string(device.message()).c_str());
    return kNoDevice;
  }
  const absl::Status status = Run(repeats, sizes);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) { return gpushare::benchmarks::Main(argc, argv); }
