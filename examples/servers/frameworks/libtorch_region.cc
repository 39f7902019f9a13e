// A TorchScript model in LibTorch as latency-critical (LC) work, beside a best-effort (BE) loop of
// LibTorch.
//
//   example_libtorch MODEL.pt     a model of one input, float32 [8, 3, 224, 224]
//
// Eager LibTorch work is not registered, so each forward pass is a region: what is enqueued on the
// region's stream is one query. The stream guard makes that stream the current one of this thread,
// so that LibTorch, its allocator and its cuBLAS handles use it. A region cannot be evicted, nor
// confined to a set of SMs.
//
// Memory: the caching allocator gives a block to another stream only once it knows that this one is
// done with it. So wait for the ticket before a tensor of the region is read on another stream.
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/script.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <gpushare/gpushare.hpp>
#include <string>
#include <thread>

namespace {

constexpr int kQueries = 1000;
constexpr c10::DeviceIndex kDevice = 0;
constexpr int64_t kWaitNs = 5'000'000;     // how long a region waits for its turn
constexpr int64_t kBeBoundNs = 1'000'000;  // what a BE region takes at most

c10::cuda::CUDAStream StreamOf(const gpushare::Region& region) {
  return c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(region.stream()), kDevice);
}

void Wait(gpushare::Region& region) {
  const gpushare::Ticket ticket = region.End().value();
  if (const gpushare::Status status = ticket.Wait(); !status.ok()) throw gpushare::Error(status);
}

gpushare::Queue MakeQueue(const gpushare::Runtime& runtime, const char* name,
                          gpushare_app_class app_class, double p99_bound) {
  gpushare::AppOptions options;
  options.name = name;
  options.app_class = app_class;
  options.p99_bound = p99_bound;
  return runtime.CreateApp(options).value().CreateQueue().value();
}

torch::Tensor Answer(const gpushare::Queue& queue, torch::jit::Module& model,
                     const torch::Tensor& input) {
  gpushare::RegionOptions options;
  options.wait_ns = kWaitNs;
  gpushare::Region region = queue.BeginRegion(options).value();
  torch::Tensor output;
  {
    const c10::InferenceMode inference;
    const c10::cuda::CUDAStreamGuard guard(StreamOf(region));
    output = model.forward({input}).toTensor();
  }
  Wait(region);
  return output;
}

// Small products: a region that runs delays a query until it ends, so a BE region must be short.
void Train(const gpushare::Queue& queue, const std::atomic<bool>& stopping) {
  const torch::Tensor weights = torch::rand({1024, 1024}, torch::kCUDA);
  gpushare::RegionOptions options;
  options.bound_ns = kBeBoundNs;
  options.wait_ns = kWaitNs;
  while (!stopping.load()) {
    gpushare::Result<gpushare::Region> region = queue.BeginRegion(options);
    if (!region.ok()) continue;  // LC work was on the device for all of the wait
    {
      const c10::InferenceMode inference;
      const c10::cuda::CUDAStreamGuard guard(StreamOf(*region));
      static_cast<void>(torch::mm(weights, weights));
    }
    Wait(*region);
  }
}

void Run(const char* path) {
  gpushare::RuntimeOptions options;
  options.device = "cuda";
  const gpushare::Runtime runtime = gpushare::Runtime::Create(options).value();
  const gpushare::Queue service =
      MakeQueue(runtime, "service", GPUSHARE_CLASS_LATENCY_CRITICAL, 1.05);
  const gpushare::Queue training = MakeQueue(runtime, "training", GPUSHARE_CLASS_BEST_EFFORT, 0);
  torch::jit::Module model = torch::jit::load(path, torch::kCUDA);
  const torch::Tensor input = torch::rand({8, 3, 224, 224}, torch::kCUDA);
  std::atomic<bool> stopping{false};
  std::thread trainer([&] { Train(training, stopping); });
  for (int i = 0; i < kQueries; ++i) Answer(service, model, input);
  stopping.store(true);
  trainer.join();
  std::printf("%s", runtime.Metrics().value().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run(argc == 2 ? argv[1] : "model.pt");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
