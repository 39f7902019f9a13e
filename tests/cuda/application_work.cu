// See application_work.h.

#include <cuda_runtime.h>

#include "tests/cuda/application_work.h"

namespace gpushare::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr uint64_t kSpinMaxNs = 5'000'000'000;

cudaStream_t StreamOf(void* stream) { return static_cast<cudaStream_t>(stream); }

__device__ uint64_t NowNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void __launch_bounds__(kThreads) SpinKernel(uint64_t spin_ns) {
  const uint64_t begin_ns = NowNs();
  while (NowNs() - begin_ns < spin_ns) {
  }
}

bool Worked(cudaError_t code) {
  if (code != cudaSuccess) cudaGetLastError();
  return code == cudaSuccess;
}

}  // namespace

void* MakeApplicationStream() {
  cudaStream_t stream = nullptr;
  return Worked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) ? stream : nullptr;
}

void DestroyApplicationStream(void* stream) {
  if (stream != nullptr) cudaStreamDestroy(StreamOf(stream));
}

bool Spin(void* stream, int blocks, uint64_t spin_ns) {
  if (spin_ns > kSpinMaxNs) return false;
  SpinKernel<<<blocks, kThreads, 0, StreamOf(stream)>>>(spin_ns);
  return Worked(cudaGetLastError());
}

bool StreamIsIdle(void* stream) { return Worked(cudaStreamQuery(StreamOf(stream))); }

bool AwaitApplicationStream(void* stream) {
  return Worked(cudaStreamSynchronize(StreamOf(stream)));
}

bool BeginGlobalCapture(void* stream) {
  return Worked(cudaStreamBeginCapture(StreamOf(stream), cudaStreamCaptureModeGlobal));
}

int EndCapture(void* stream) {
  cudaGraph_t graph = nullptr;
  if (!Worked(cudaStreamEndCapture(StreamOf(stream), &graph)) || graph == nullptr) return -1;
  size_t nodes = 0;
  const bool counted = Worked(cudaGraphGetNodes(graph, nullptr, &nodes));
  cudaGraphDestroy(graph);
  return counted ? static_cast<int>(nodes) : -1;
}

void* MakeDeviceMemory(size_t bytes) {
  void* memory = nullptr;
  return Worked(cudaMalloc(&memory, bytes)) ? memory : nullptr;
}

void FreeDeviceMemory(void* memory) { cudaFree(memory); }

void* MakePinnedMemory(size_t bytes) {
  void* memory = nullptr;
  return Worked(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable)) ? memory : nullptr;
}

void FreePinnedMemory(void* memory) { cudaFreeHost(memory); }

bool CopyToHost(void* host, const void* device, size_t bytes, void* stream) {
  return Worked(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, StreamOf(stream)));
}

void* MakeSpinningChain(int nodes, uint64_t spin_ns) {
  cudaStream_t stream = nullptr;
  if (!Worked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  for (int i = 0; i < nodes; ++i) SpinKernel<<<1, kThreads, 0, stream>>>(spin_ns);
  if (!Worked(cudaStreamEndCapture(stream, &graph))) graph = nullptr;
  cudaStreamDestroy(stream);
  return graph;
}

void DestroySpinningChain(void* graph) {
  if (graph != nullptr) cudaGraphDestroy(static_cast<cudaGraph_t>(graph));
}

int SmCount() {
  int count = 0;
  if (!Worked(cudaGetDeviceCount(&count)) || count == 0) return 0;
  cudaDeviceProp properties = {};
  return Worked(cudaGetDeviceProperties(&properties, 0)) ? properties.multiProcessorCount : 0;
}

}  // namespace gpushare::cuda
