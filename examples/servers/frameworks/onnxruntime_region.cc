// A model in ONNX Runtime as latency-critical (LC) work, by user_compute_stream.
//
//   example_onnxruntime MODEL.onnx INPUT OUTPUT     one input, float32 [1, 3, 224, 224]
//
// A session has one stream for its life, and each region may have another one. So the session gets
// a stream of our own, and two events tie its work to the region: the session's work starts behind
// the region's begin, and the region ends behind the session's work. What the session enqueues
// stays on the whole device, and cannot be evicted. ONNX Runtime must not wait for the device at
// the end of a run: the ticket does.
#include <cuda_runtime_api.h>
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <gpushare/gpushare.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kQueries = 1000;
constexpr int64_t kWaitNs = 5'000'000;  // how long a region waits for its turn
constexpr std::array<int64_t, 4> kShape = {1, 3, 224, 224};

void Check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

// The stream of a session, tied to regions.
class SessionStream {
 public:
  SessionStream() {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    Check(cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming));
    Check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  }
  ~SessionStream() {
    cudaEventDestroy(begun_);
    cudaEventDestroy(done_);
    cudaStreamDestroy(stream_);
  }
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  cudaStream_t get() const { return stream_; }
  void BeginBehind(cudaStream_t region) {
    Check(cudaEventRecord(begun_, region));
    Check(cudaStreamWaitEvent(stream_, begun_, 0));
  }
  void EndBefore(cudaStream_t region) {
    Check(cudaEventRecord(done_, stream_));
    Check(cudaStreamWaitEvent(region, done_, 0));
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

Ort::Session MakeSession(Ort::Env& env, const char* path, const SessionStream& stream) {
  Ort::CUDAProviderOptions provider;
  provider.UpdateWithValue("user_compute_stream", stream.get());
  Ort::SessionOptions options;
  options.AppendExecutionProvider_CUDA_V2(*static_cast<OrtCUDAProviderOptionsV2*>(provider));
  return Ort::Session(env, path, options);
}

void Answer(const gpushare::Queue& queue, SessionStream& stream, Ort::Session& session,
            const Ort::IoBinding& binding) {
  Ort::RunOptions run;
  run.AddConfigEntry("disable_synchronize_execution_providers", "1");
  gpushare::RegionOptions options;
  options.wait_ns = kWaitNs;
  gpushare::Region region = queue.BeginRegion(options).value();
  const auto region_stream = static_cast<cudaStream_t>(region.stream());
  stream.BeginBehind(region_stream);
  session.Run(run, binding);
  stream.EndBefore(region_stream);
  const gpushare::Ticket ticket = region.End().value();
  if (const gpushare::Status status = ticket.Wait(); !status.ok()) throw gpushare::Error(status);
}

void Run(const char* path, const char* input_name, const char* output_name) {
  gpushare::RuntimeOptions options;
  options.device = "cuda";
  const gpushare::Runtime runtime = gpushare::Runtime::Create(options).value();
  gpushare::AppOptions app;
  app.name = "service";
  app.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  app.p99_bound = 1.05;
  const gpushare::Queue queue = runtime.CreateApp(app).value().CreateQueue().value();

  SessionStream stream;
  Ort::Env env;
  Ort::Session session = MakeSession(env, path, stream);
  std::vector<float> values(static_cast<size_t>(kShape[0] * kShape[1] * kShape[2] * kShape[3]));
  const Ort::MemoryInfo host = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Ort::Value input = Ort::Value::CreateTensor<float>(host, values.data(), values.size(),
                                                           kShape.data(), kShape.size());
  const Ort::MemoryInfo device("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  Ort::IoBinding binding(session);
  binding.BindInput(input_name, input);
  binding.BindOutput(output_name, device);
  for (int i = 0; i < kQueries; ++i) Answer(queue, stream, session, binding);
  std::printf("%s", runtime.Metrics().value().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: example_onnxruntime MODEL.onnx INPUT OUTPUT\n");
    return 2;
  }
  try {
    Run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
