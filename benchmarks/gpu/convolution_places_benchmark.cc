// convolution_places_benchmark: cuDNN's convolution on part of the GPU by the graph interface,
// whose engine gets the number of its SMs, against the immediate function, which does not; on the
// whole GPU neither gets it. Layers of ResNet-50 and VGG-16 in bf16, NHWC, batch 32. Prints one
// JSON object: medians of alternating runs, of one call and of a call among kQueued. The graph's
// are null where no engine takes the number.
//
//   convolution_places_benchmark [--repeats N] [--sms A,B]

#include <cudnn.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/convolution_layers.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/driver.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/library/cudnn_convolution.h"
#include "src/cuda/library/cudnn_convolution_graph.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kWarmUps = 3;
constexpr int kQueued = 20;
constexpr uint32_t kBatch = 32;

// A part of the GPU with a stream and a cuDNN handle; its context is current while it lives.
class Part {
 public:
  Part(const cuda::CudnnApi& cudnn, const cuda::Context& context, const cuda::Places& places,
       core::PlaceIndex index)
      : cudnn_(cudnn),
        context_(context),
        place_(places.place(index)),
        stream_(Take(places.MakeStream(index, 0))) {
    context_.api().cuCtxPushCurrent(place_.context);
    if (cudnn_.cudnnCreate(&handle_) != CUDNN_STATUS_SUCCESS ||
        cudnn_.cudnnSetStream(handle_, stream_) != CUDNN_STATUS_SUCCESS) {
      Close();
      Fail("cuDNN makes no handle in the part.");
    }
  }
  ~Part() { Close(); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  int32_t sms() const { return place_.sms; }
  cudnnHandle_t handle() const { return handle_; }
  CUstream stream() const { return stream_; }

 private:
  void Close() {
    if (handle_ != nullptr) cudnn_.cudnnDestroy(handle_);
    context_.api().cuStreamDestroy(stream_);
    CUcontext popped = nullptr;
    context_.api().cuCtxPopCurrent(&popped);
  }

  const cuda::CudnnApi& cudnn_;
  const cuda::Context& context_;
  const cuda::Place place_;
  const CUstream stream_;
  cudnnHandle_t handle_ = nullptr;
};

// The operands of a layer, zeroed, and the workspace. Made while the primary context is current.
struct Memory {
  explicit Memory(const core::LibraryCall& call) : buffers(call), operands(buffers.operands()) {
    operands.alpha = 2;  // what only the immediate function does
    Require(workspace.Allocate(cuda::kWorkspaceBytes));
    for (const auto* buffer : {&buffers.input, &buffers.weights, &buffers.output, &workspace}) {
      Zero(*buffer);
    }
  }

  ConvolutionBuffers buffers;
  core::LibraryArguments operands;
  kernels::DeviceBuffer workspace;
};

struct Times {
  std::vector<double> one_ms;
  std::vector<double> queued_ms;
};

// Milliseconds of one call, and of a call among kQueued.
template <class Enqueue>
void TimeBoth(EventTimer& timer, const Part& part, const Enqueue& enqueue, Times& times) {
  times.one_ms.push_back(timer.Ms(part.stream(), [&] { Require(enqueue()); }));
  const double queued_ms = timer.Ms(part.stream(), [&] {
    for (int i = 0; i < kQueued; ++i) Require(enqueue());
  });
  times.queued_ms.push_back(queued_ms / kQueued);
}

Json Measure(const cuda::CudnnApi& cudnn, const Part& part, const ConvolutionLayer& layer,
             const Memory& memory, int device_sms, int repeats) {
  const core::LibraryCall call = CallOf(layer, kBatch);
  const auto plan = Take(cuda::MakeCudnnConvolution(cudnn, part.handle(), call, 0));
  cuda::ConvolutionGraph graph(cudnn, call);
  const cuda::CudnnDimensions output = {cuda::Int(call.batch), cuda::Int(call.filters),
                                        cuda::Int(call.height), cuda::Int(call.width)};
  // Without an engine that takes the number of SMs there is no graph.
  const bool has_graph =
      graph.Make(part.handle(), output, cuda::SmTarget(part.sms(), device_sms)).ok();
  EventTimer timer;
  Times immediate;
  Times graphs;
  for (int i = -kWarmUps; i < repeats; ++i) {
    if (i == 0) immediate = graphs = {};
    TimeBoth(
        timer, part,
        [&] {
          return plan->Enqueue(part.handle(), part.stream(), memory.workspace.data(),
                               memory.operands);
        },
        immediate);
    if (!has_graph) continue;
    TimeBoth(
        timer, part,
        [&] { return graph.Execute(part.handle(), memory.workspace.data(), memory.operands); },
        graphs);
  }
  const double queued_ms = Median(immediate.queued_ms);
  const double graph_queued_ms = Median(graphs.queued_ms);
  const Json none = nullptr;
  return {{"sms", part.sms()},
          {"layer", layer.name},
          {"immediate_ms", Rounded(Median(immediate.one_ms), 4)},
          {"immediate_queued_ms", Rounded(queued_ms, 4)},
          {"graph_ms", has_graph ? Rounded(Median(graphs.one_ms), 4) : none},
          {"graph_queued_ms", has_graph ? Rounded(graph_queued_ms, 4) : none},
          {"queued_ratio", has_graph ? Rounded(graph_queued_ms / queued_ms, 3) : none}};
}

core::PlaceIndex PlaceOf(cuda::Places& places, int size, int device_sms) {
  if (size >= device_sms) return core::kWholeDevice;
  core::PlaceSpec spec;
  spec.groups = std::clamp(size / std::max(1, places.granularity()), 1, places.groups());
  const core::PlaceIndex place = places.count();
  if (place == core::kMaxPlaces) Fail("The benchmark asks for more places than a device has.");
  if (const absl::Status status = places.Create(place, spec); !status.ok()) {
    Fail(std::string(status.message()));
  }
  return place;
}

int Run(Arguments& given) {
  const int repeats = given.Number("--repeats", 15, 1);
  const std::vector<int> sizes = given.Numbers("--sms", {32, 64, 96, 120, 132}, 1);
  given.Finish();
  Require(cuda::CheckDevice(cuda::SystemDriver(), 0), kNoGpu);
  const cuda::CudnnApi cudnn = Take(cuda::OpenCudnnApi());
  const std::unique_ptr<cuda::Context> context = Take(cuda::Context::Open(0));
  const cuda::ScopedContext current(*context);
  cuda::Places places(*context);
  const int sms = context->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  Require(places.Split(sms));
  Report report({{"benchmark", "convolution_places_benchmark"},
                 {"sms", sms},
                 {"repeats", repeats},
                 {"note", "cuDNN, bf16, NHWC, batch 32, 3 x 3; medians of alternating runs"}},
                "rows");
  for (const int size : sizes) {
    const core::PlaceIndex place = PlaceOf(places, size, sms);
    for (const ConvolutionLayer& layer : kConvolutionLayers) {
      const Memory memory(CallOf(layer, kBatch));
      const Part part(cudnn, *context, places, place);
      report.Row(Measure(cudnn, part, layer, memory, sms, repeats));
    }
  }
  report.End();
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("convolution_places_benchmark", argc, argv,
                                    gpushare::benchmarks::Run);
}
