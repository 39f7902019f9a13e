// The worker probe's kernel and launcher. See probe.h. CUDA C++17, without Abseil and Eigen.

#include <cuda_runtime.h>

#include <vector>

#include "src/cuda/driver/probe.h"

namespace gpushare::cuda {
namespace {

constexpr int kProbeThreads = 128;

struct ProbeState {
  // The lane's eviction word: the epoch in the high half, the number of workers to keep in the low
  // half.
  unsigned long long eviction_word;
  unsigned int next_block_task;
  unsigned int finished_workers;
};

// A worker reads its eviction word, then claims, then executes everything it claimed. It never
// leaves between a claim and its execution, so no block task is lost or runs twice.
__global__ void __launch_bounds__(kProbeThreads)
    ProbeWorkers(ProbeState* state, unsigned int* executions, unsigned int block_tasks,
                 unsigned int epoch) {
  __shared__ unsigned int block_task;
  for (;;) {
    if (threadIdx.x == 0) {
      const unsigned long long word =
          *reinterpret_cast<volatile unsigned long long*>(&state->eviction_word);
      const unsigned int evicted_epoch = static_cast<unsigned int>(word >> 32);
      const unsigned int workers_to_keep = static_cast<unsigned int>(word);
      const bool evicted =
          static_cast<int>(evicted_epoch - epoch) >= 0 && blockIdx.x >= workers_to_keep;
      block_task = evicted ? block_tasks : atomicAdd(&state->next_block_task, 1U);
    }
    __syncthreads();
    const unsigned int mine = block_task;
    __syncthreads();  // all threads have read it before thread 0 overwrites it
    if (mine >= block_tasks) break;
    if (threadIdx.x == 0) atomicAdd(&executions[mine], 1U);
  }
  if (threadIdx.x == 0) atomicAdd(&state->finished_workers, 1U);
}

// Frees what the probe allocated, whichever step fails.
struct ProbeMemory {
  ProbeState* state = nullptr;
  unsigned int* executions = nullptr;
  cudaStream_t stream = nullptr;
  ~ProbeMemory() {
    if (stream != nullptr) cudaStreamDestroy(stream);
    cudaFree(executions);
    cudaFree(state);
  }
};

}  // namespace

ProbeResult RunWorkerProbe(const ProbeRequest& request) {
  ProbeResult result;
  ProbeMemory memory;
  const auto failed = [&result](cudaError_t code, const char* step) {
    result.error = static_cast<int>(code);
    result.step = step;
    // Clear the error: the application must not take it for its own.
    if (code != cudaSuccess) cudaGetLastError();
    return code != cudaSuccess;
  };
  const size_t executions_bytes = request.block_tasks * sizeof(unsigned int);
  ProbeState initial = {};
  initial.eviction_word =
      (static_cast<unsigned long long>(request.evicted_epoch) << 32) | request.workers_to_keep;
  std::vector<unsigned int> executions(request.block_tasks, 0);

  // Set the device only if it must change: that makes its context current for this thread.
  int current = -1;
  if (failed(cudaGetDevice(&current), "cudaGetDevice")) return result;
  if (current != request.ordinal && failed(cudaSetDevice(request.ordinal), "cudaSetDevice")) {
    return result;
  }
  if (failed(cudaStreamCreateWithFlags(&memory.stream, cudaStreamNonBlocking),
             "cudaStreamCreateWithFlags")) {
    return result;
  }
  if (failed(cudaMalloc(&memory.state, sizeof(ProbeState)), "cudaMalloc")) return result;
  if (failed(cudaMalloc(&memory.executions, executions_bytes), "cudaMalloc")) return result;
  if (failed(cudaMemcpyAsync(memory.state, &initial, sizeof(initial), cudaMemcpyHostToDevice,
                             memory.stream),
             "cudaMemcpyAsync")) {
    return result;
  }
  if (failed(cudaMemsetAsync(memory.executions, 0, executions_bytes, memory.stream),
             "cudaMemsetAsync")) {
    return result;
  }
  // cudaGetLastError would answer with an error that the application has not read.
  auto block_tasks = request.block_tasks;
  auto epoch = request.epoch;
  void* arguments[] = {&memory.state, &memory.executions, &block_tasks, &epoch};
  if (failed(cudaLaunchKernel(ProbeWorkers, dim3(request.workers), dim3(kProbeThreads), arguments,
                              0, memory.stream),
             "cudaLaunchKernel")) {
    return result;
  }
  ProbeState final_state = {};
  if (failed(cudaMemcpyAsync(&final_state, memory.state, sizeof(final_state),
                             cudaMemcpyDeviceToHost, memory.stream),
             "cudaMemcpyAsync")) {
    return result;
  }
  if (failed(cudaMemcpyAsync(executions.data(), memory.executions, executions_bytes,
                             cudaMemcpyDeviceToHost, memory.stream),
             "cudaMemcpyAsync")) {
    return result;
  }
  if (failed(cudaStreamSynchronize(memory.stream), "cudaStreamSynchronize")) return result;

  // Each worker that finds no block task left has claimed one past the end.
  result.claimed = final_state.next_block_task < request.block_tasks ? final_state.next_block_task
                                                                     : request.block_tasks;
  result.finished_workers = final_state.finished_workers;
  for (const unsigned int count : executions) {
    if (count > 0) ++result.executed;
    if (count > 1) ++result.repeated;
  }
  return result;
}

int CountDevices(int* count) {
  int found = 0;
  const cudaError_t code = cudaGetDeviceCount(&found);
  *count = code == cudaSuccess ? found : 0;
  return static_cast<int>(code);
}

const char* ErrorText(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

}  // namespace gpushare::cuda
