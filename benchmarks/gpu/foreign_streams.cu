// See foreign_streams.h.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "benchmarks/gpu/foreign_streams.h"

namespace gpushare::benchmarks {
namespace {

constexpr uint64_t kKernelNs = 2'000'000;
constexpr uint32_t kSleepNs = 1'000;

__device__ uint64_t Now() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Bounded by its own clock. Between two looks at it the warp sleeps, or not.
__global__ void Wait(uint64_t wait_ns, uint32_t sleep_ns) {
  const uint64_t end_ns = Now() + wait_ns;
  while (Now() < end_ns) {
    if (sleep_ns > 0) __nanosleep(sleep_ns);
  }
}

void Require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "foreign_streams: CUDA answers %s\n", cudaGetErrorString(code));
  std::exit(1);
}

}  // namespace

ForeignStreams::ForeignStreams(int count, Foreign kind)
    : sleep_ns_(kind == Foreign::kSleeps ? kSleepNs : 0), thread_([this, count] { Run(count); }) {
  while (!started_.load()) std::this_thread::yield();
}

ForeignStreams::~ForeignStreams() {
  stop_.store(true);
  thread_.join();
}

void ForeignStreams::Run(int count) {
  struct Stream {
    cudaStream_t stream = nullptr;
    cudaEvent_t first_done = nullptr;  // of the two kernels in the stream
  };
  std::vector<Stream> streams(static_cast<size_t>(count));
  for (Stream& each : streams) {
    Require(cudaStreamCreateWithFlags(&each.stream, cudaStreamNonBlocking));
    Require(cudaEventCreateWithFlags(&each.first_done, cudaEventDisableTiming));
    Wait<<<1, 32, 0, each.stream>>>(kKernelNs, sleep_ns_);
    Require(cudaEventRecord(each.first_done, each.stream));
    Wait<<<1, 32, 0, each.stream>>>(kKernelNs, sleep_ns_);
  }
  Require(cudaGetLastError());
  started_.store(true);
  while (!stop_.load()) {
    for (Stream& each : streams) {
      if (cudaEventQuery(each.first_done) != cudaSuccess) continue;
      Require(cudaEventRecord(each.first_done, each.stream));  // behind the second kernel
      Wait<<<1, 32, 0, each.stream>>>(kKernelNs, sleep_ns_);
    }
  }
  for (Stream& each : streams) {
    Require(cudaStreamSynchronize(each.stream));
    Require(cudaEventDestroy(each.first_done));
    Require(cudaStreamDestroy(each.stream));
  }
}

}  // namespace gpushare::benchmarks
