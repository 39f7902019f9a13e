#include "benchmarks/gpu/foreign_streams.h"

#include <cuda_runtime_api.h>

#include <vector>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_kernels.h"

namespace gpushare::benchmarks {
namespace {

constexpr uint64_t kKernelNs = 2'000'000;
constexpr uint32_t kSleepNs = 1'000;

}  // namespace

ForeignStreams::ForeignStreams(int count, Foreign kind)
    : sleep_ns_(kind == Foreign::kSleeps ? kSleepNs : 0), thread_([this, count] { Run(count); }) {
  while (!started_.load()) std::this_thread::yield();
}

ForeignStreams::~ForeignStreams() {
  stop_.store(true);
  thread_.join();
}

// noexcept: a Failure on this thread has nobody to go to, and ends the program with its sentence.
void ForeignStreams::Run(int count) noexcept {
  struct Stream {
    cudaStream_t stream = nullptr;
    cudaEvent_t first_done = nullptr;  // of the two kernels in the stream
  };
  const auto launch = [this](const Stream& each) {
    Cuda(LaunchWait({kKernelNs, sleep_ns_}, 1, 32, each.stream), "a foreign kernel");
  };
  const auto record = [](const Stream& each) {
    Cuda(cudaEventRecord(each.first_done, each.stream), "cudaEventRecord");
  };
  std::vector<Stream> streams(static_cast<size_t>(count));
  for (Stream& each : streams) {
    Cuda(cudaStreamCreateWithFlags(&each.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    Cuda(cudaEventCreateWithFlags(&each.first_done, cudaEventDisableTiming), "cudaEventCreate");
    launch(each);
    record(each);
    launch(each);
  }
  started_.store(true);
  while (!stop_.load()) {
    for (const Stream& each : streams) {
      if (cudaEventQuery(each.first_done) != cudaSuccess) continue;
      record(each);  // behind the second kernel
      launch(each);
    }
  }
  for (const Stream& each : streams) {
    Synchronize(each.stream);
    Cuda(cudaEventDestroy(each.first_done), "cudaEventDestroy");
    Cuda(cudaStreamDestroy(each.stream), "cudaStreamDestroy");
  }
}

}  // namespace gpushare::benchmarks
