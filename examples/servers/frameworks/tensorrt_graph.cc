// A TensorRT engine as latency-critical (LC) work: enqueueV3 on a stream that is captured, as a
// graph.
//
//   example_tensorrt ENGINE.plan     static shapes, float32 or float16
//
// A graph is better than a region: it may run on a part of the SMs, and costs one launch. Build the
// engine with IBuilderConfig::setMaxAuxStreams(0) if its auxiliary streams should not be in the
// graph. Work whose shapes change takes a region instead: enqueueV3(region.stream()), as
// libtorch_region.cc does for LibTorch.
//
// The graph keeps the addresses of the tensors and of the context's memory: both live as long as
// the graph, and one graph at a time runs on a context. So its tasks go to one queue, which runs
// them in order.
#include <NvInfer.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <gpushare/gpushare.hpp>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kQueries = 1000;

void Check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

template <class Made>
std::unique_ptr<Made> Own(Made* made, const char* what) {
  if (made == nullptr) throw std::runtime_error(std::string("TensorRT makes no ") + what + ".");
  return std::unique_ptr<Made>(made);
}

class Logger : public nvinfer1::ILogger {
 public:
  void log(Severity severity, nvinfer1::AsciiChar const* message) noexcept override {
    if (severity <= Severity::kERROR) std::fprintf(stderr, "%s\n", message);
  }
};

size_t BytesOf(const nvinfer1::ICudaEngine& engine, const char* tensor) {
  size_t bytes = 0;
  switch (engine.getTensorDataType(tensor)) {
    case nvinfer1::DataType::kFLOAT:
      bytes = 4;
      break;
    case nvinfer1::DataType::kHALF:
      bytes = 2;
      break;
    default:
      throw std::runtime_error(std::string("The tensor ") + tensor +
                               " is neither float32 nor float16.");
  }
  const nvinfer1::Dims shape = engine.getTensorShape(tensor);
  for (int32_t i = 0; i < shape.nbDims; ++i) {
    if (shape.d[i] < 0)
      throw std::runtime_error(std::string("The tensor ") + tensor + " has no static shape.");
    bytes *= static_cast<size_t>(shape.d[i]);
  }
  return bytes;
}

// The memory of an engine's tensors, until the process ends.
void BindTensors(const nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext& context) {
  for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
    const char* const name = engine.getIOTensorName(i);
    void* memory = nullptr;
    Check(cudaMalloc(&memory, BytesOf(engine, name)));
    if (!context.setTensorAddress(name, memory))
      throw std::runtime_error("TensorRT refuses an address.");
  }
}

// TensorRT does what it puts off in its first run, which a capture would not allow.
void RunOnce(nvinfer1::IExecutionContext& context) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (!context.enqueueV3(stream)) throw std::runtime_error("TensorRT does not run the engine.");
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
}

void Run(const std::vector<char>& plan) {
  gpushare::RuntimeOptions options;
  options.device = "cuda";
  const gpushare::Runtime runtime = gpushare::Runtime::Create(options).value();
  gpushare::AppOptions app;
  app.name = "service";
  app.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  app.p99_bound = 1.05;
  const gpushare::Queue queue = runtime.CreateApp(app).value().CreateQueue().value();

  Logger logger;
  const auto inference = Own(nvinfer1::createInferRuntime(logger), "runtime");
  const auto engine = Own(inference->deserializeCudaEngine(plan.data(), plan.size()), "engine");
  const auto context = Own(engine->createExecutionContext(), "context");
  BindTensors(*engine, *context);
  RunOnce(*context);

  gpushare::KernelOptions graph;
  graph.name = "model";
  graph.measure_places = 1;  // it may be confined to the SMs on which it is as fast
  const gpushare::Kernel model =
      runtime
          .RegisterGraph(graph,
                         [&](void* stream, int32_t) {
                           return context->enqueueV3(static_cast<cudaStream_t>(stream)) ? 0 : 1;
                         })
          .value();
  gpushare::TaskOptions query;
  query.kernel = model.get();
  for (int i = 0; i < kQueries; ++i) {
    if (queue.RunLc(query).value() != GPUSHARE_VERDICT_OK)
      throw std::runtime_error("A query fails.");
  }
  std::printf("%s", runtime.Metrics().value().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::ifstream file(argc == 2 ? argv[1] : "model.plan", std::ios::binary);
    if (!file) throw std::runtime_error("The engine cannot be read.");
    Run(std::vector<char>(std::istreambuf_iterator<char>(file), {}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
