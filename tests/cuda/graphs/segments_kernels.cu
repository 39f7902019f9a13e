// The graphs of segments_kernels.h.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>

#include "tests/cuda/graphs/segments_kernels.h"

namespace gpushare::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kClusterSharedBytes = 64 * 1024;
using Value = unsigned long long;

__device__ void SpinAndAppend(uint64_t id, uint32_t wait_ns, Value* log) {
  uint64_t begin = 0;
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < wait_ns);
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  log[1 + log[0]] = id;
  ++log[0];
}

__global__ void AppendKernel(uint64_t id, uint32_t wait_ns, Value* log) {
  SpinAndAppend(id, wait_ns, log);
}

__global__ void ProgrammaticKernel(uint64_t id, uint32_t wait_ns, Value* log) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
  SpinAndAppend(id, wait_ns, log);
}

__global__ void MixKernel(int id, int first, int second, Value* values) {
  Value sum = 0;
  if (first >= 0) sum += values[first];
  if (second >= 0) sum += values[second];
  values[id] = 1 + 31 * sum;
}

__global__ void ClusterKernel(Value* count) {
  extern __shared__ char shared[];
  shared[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(count, static_cast<Value>(shared[0]));
}

Value* Of(uint64_t* values) { return reinterpret_cast<Value*>(values); }

template <class Enqueue>
void* Capture(Enqueue enqueue) {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  enqueue(stream);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) graph = nullptr;
  cudaStreamDestroy(stream);
  return cudaGetLastError() == cudaSuccess ? graph : nullptr;
}

// Adds MixKernel behind `previous`, which may be null; false: an error.
bool AddMix(cudaGraph_t graph, cudaGraphNode_t previous, int id, int first, int second,
            uint64_t* values, cudaGraphNode_t& made) {
  Value* all = Of(values);
  void* arguments[] = {&id, &first, &second, &all};
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(&MixKernel);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = arguments;
  return cudaGraphAddKernelNode(&made, graph, &previous, previous == nullptr ? 0 : 1, &params) ==
         cudaSuccess;
}

// One child of MakeNested.
cudaGraph_t MakeChild(int i, uint64_t* values) {
  cudaGraph_t graph = nullptr;
  if (cudaGraphCreate(&graph, 0) != cudaSuccess) return nullptr;
  cudaGraphNode_t fill = nullptr;
  cudaGraphNode_t mix = nullptr;
  cudaGraphNode_t copy = nullptr;
  cudaMemsetParams params = {};
  params.dst = values + 3 * i;
  params.elementSize = 1;
  params.width = sizeof(uint64_t);
  params.height = 1;
  params.value = 1 + static_cast<unsigned int>(i) % 9;
  if (cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &params) != cudaSuccess) return nullptr;
  if (!AddMix(graph, fill, 3 * i + 1, 3 * i, 3 * i - 1, values, mix)) return nullptr;
  const cudaError_t error =
      cudaGraphAddMemcpyNode1D(&copy, graph, &mix, 1, values + 3 * i + 2, values + 3 * i + 1,
                               sizeof(uint64_t), cudaMemcpyDeviceToDevice);
  return error == cudaSuccess ? graph : nullptr;
}

}  // namespace

uint64_t* MakeValues(int count) {
  uint64_t* values = nullptr;
  if (cudaMalloc(&values, sizeof(uint64_t) * static_cast<size_t>(count)) != cudaSuccess)
    return nullptr;
  ClearValues(values, count);
  return values;
}

std::vector<uint64_t> ReadValues(const uint64_t* values, int count) {
  std::vector<uint64_t> out(static_cast<size_t>(count));
  cudaDeviceSynchronize();
  cudaMemcpy(out.data(), values, sizeof(uint64_t) * out.size(), cudaMemcpyDeviceToHost);
  return out;
}

void ClearValues(uint64_t* values, int count) {
  cudaMemset(values, 0, sizeof(uint64_t) * static_cast<size_t>(count));
  cudaDeviceSynchronize();
}

void* MakeUnevenChain(const std::vector<uint32_t>& waits_ns, int blocks, uint64_t* log) {
  return Capture([&](cudaStream_t stream) {
    for (size_t i = 0; i < waits_ns.size(); ++i) {
      AppendKernel<<<blocks, kThreads, 0, stream>>>(i, waits_ns[i], Of(log));
    }
  });
}

void* MakeChain(int nodes, uint32_t wait_ns, int blocks, uint64_t* log) {
  return MakeUnevenChain(std::vector<uint32_t>(static_cast<size_t>(nodes), wait_ns), blocks, log);
}

void* MakeMixture(const std::vector<Parents>& nodes, uint64_t* values) {
  cudaGraph_t graph = nullptr;
  if (cudaGraphCreate(&graph, 0) != cudaSuccess) return nullptr;
  std::vector<cudaGraphNode_t> made(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<int>& parents = nodes[i].of;
    std::vector<cudaGraphNode_t> dependencies;
    for (const int parent : parents) dependencies.push_back(made[static_cast<size_t>(parent)]);
    const size_t count = dependencies.size();
    cudaError_t error = cudaSuccess;
    if (i % 16 == 0) {
      cudaMemsetParams params = {};
      params.dst = values + i;
      params.elementSize = 1;
      params.width = sizeof(uint64_t);
      params.height = 1;
      params.value = 7;
      error = cudaGraphAddMemsetNode(&made[i], graph, dependencies.data(), count, &params);
    } else if (i % 16 == 8) {
      error =
          cudaGraphAddMemcpyNode1D(&made[i], graph, dependencies.data(), count, values + i,
                                   values + parents[0], sizeof(uint64_t), cudaMemcpyDeviceToDevice);
    } else {
      int id = static_cast<int>(i);
      int first = parents.empty() ? -1 : parents[0];
      int second = parents.size() < 2 ? -1 : parents[1];
      Value* all = Of(values);
      void* arguments[] = {&id, &first, &second, &all};
      cudaKernelNodeParams params = {};
      params.func = reinterpret_cast<void*>(&MixKernel);
      params.gridDim = params.blockDim = dim3(1);
      params.kernelParams = arguments;
      error = cudaGraphAddKernelNode(&made[i], graph, dependencies.data(), count, &params);
    }
    if (error != cudaSuccess) return nullptr;
  }
  return graph;
}

int32_t CaptureClusters(void* user, void* stream, int32_t /*sm_count*/) {
  const auto& chain = *static_cast<const ClusterChain*>(user);
  cudaFuncSetAttribute(ClusterKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kClusterSharedBytes);
  cudaFuncSetAttribute(ClusterKernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  for (int i = 0; i < chain.nodes; ++i) {
    const bool last = i + 1 == chain.nodes && chain.last_cluster > 0;
    const int cluster = last ? chain.last_cluster : chain.cluster;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned int>(cluster);
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned int>(cluster) * 4);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = kClusterSharedBytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, ClusterKernel, Of(chain.count));
  }
  return static_cast<int32_t>(cudaGetLastError());
}

void* MakeClusters(ClusterChain chain) {
  return Capture([&](cudaStream_t stream) { CaptureClusters(&chain, stream, 0); });
}

void* MakeNested(int count, uint64_t* values) {
  cudaGraph_t graph = nullptr;
  if (cudaGraphCreate(&graph, 0) != cudaSuccess) return nullptr;
  cudaGraphNode_t previous = nullptr;
  for (int i = 0; i < count; ++i) {
    cudaGraph_t child = MakeChild(i, values);
    if (child == nullptr) return nullptr;
    if (i % 4 == 3) {
      cudaGraph_t outer = nullptr;
      cudaGraphNode_t inner = nullptr;
      if (cudaGraphCreate(&outer, 0) != cudaSuccess ||
          cudaGraphAddChildGraphNode(&inner, outer, nullptr, 0, child) != cudaSuccess) {
        return nullptr;
      }
      cudaGraphDestroy(child);
      child = outer;
    }
    cudaGraphNode_t node = nullptr;
    const size_t behind = previous == nullptr ? 0 : 1;
    if (cudaGraphAddChildGraphNode(&node, graph, &previous, behind, child) != cudaSuccess) {
      return nullptr;
    }
    cudaGraphDestroy(child);
    previous = node;
  }
  return graph;
}

void* MakeShapes(int count, uint64_t* values) {
  cudaGraph_t graph = nullptr;
  if (cudaGraphCreate(&graph, 0) != cudaSuccess) return nullptr;
  cudaGraphNode_t previous = nullptr;
  for (int i = 0; i < count; ++i) {
    uint64_t* const own = values + i * kShapeWords;
    cudaGraphNode_t node = nullptr;
    const size_t behind = previous == nullptr ? 0 : 1;
    bool made = false;
    if (i % 3 == 0) {
      cudaMemsetParams params = {};
      params.dst = own;
      params.pitch = 64;
      params.elementSize = i % 2 == 0 ? 4 : 2;
      params.width = 5;
      params.height = 3;
      params.value = 100 + static_cast<unsigned int>(i);
      made = cudaGraphAddMemsetNode(&node, graph, &previous, behind, &params) == cudaSuccess;
    } else if (i % 3 == 1) {
      cudaMemcpy3DParms params = {};
      params.srcPtr = make_cudaPitchedPtr(own - kShapeWords, 64, 64, 4);
      params.dstPtr = make_cudaPitchedPtr(own, 32, 32, 8);
      params.srcPos = make_cudaPos(2, 0, 0);
      params.dstPos = make_cudaPos(8, 1, 0);
      params.extent = make_cudaExtent(16, 3, 1);
      params.kind = cudaMemcpyDeviceToDevice;
      made = cudaGraphAddMemcpyNode(&node, graph, &previous, behind, &params) == cudaSuccess;
    } else {
      const int at = i * kShapeWords;
      made = AddMix(graph, previous, at, at - kShapeWords + 5, at - 3 * kShapeWords, values, node);
    }
    if (!made) return nullptr;
    previous = node;
  }
  return graph;
}

void* MakeProgrammatic(int nodes, uint32_t wait_ns, uint64_t* log) {
  return Capture([&](cudaStream_t stream) {
    for (int i = 0; i < nodes; ++i) {
      cudaLaunchAttribute attribute = {};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(1);
      config.blockDim = dim3(kThreads);
      config.stream = stream;
      config.attrs = &attribute;
      config.numAttrs = i == 0 ? 0 : 1;
      cudaLaunchKernelEx(&config, ProgrammaticKernel, static_cast<uint64_t>(i), wait_ns, Of(log));
    }
  });
}

int32_t CaptureUpdatable(void* user, void* stream, int32_t /*sm_count*/) {
  Value* const log = Of(static_cast<uint64_t*>(user));
  for (uint64_t i = 0; i < 3; ++i) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &attribute;
    config.numAttrs = i == 1 ? 1 : 0;
    cudaLaunchKernelEx(&config, AppendKernel, i, 1000u, log);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

void* MakeWithHostFunction(uint64_t* log) {
  return Capture([&](cudaStream_t stream) {
    AppendKernel<<<1, 1, 0, stream>>>(0, 1000, Of(log));
    cudaLaunchHostFunc(
        stream, [](void*) {}, nullptr);
    AppendKernel<<<1, 1, 0, stream>>>(1, 1000, Of(log));
    AppendKernel<<<1, 1, 0, stream>>>(2, 1000, Of(log));
  });
}

void DestroyGraph(void* graph) { cudaGraphDestroy(static_cast<cudaGraph_t>(graph)); }

double TimeWholeGraph(void* graph, int times) {
  cudaGraphExec_t exec = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaGraphInstantiate(&exec, static_cast<cudaGraph_t>(graph), 0) != cudaSuccess) return 0;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  double best = 1e18;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / times);
  }
  cudaStreamDestroy(stream);
  cudaGraphExecDestroy(exec);
  return best;
}

bool RunWholeGraph(void* graph) {
  cudaGraphExec_t exec = nullptr;
  if (cudaGraphInstantiate(&exec, static_cast<cudaGraph_t>(graph), 0) != cudaSuccess) return false;
  const bool launched = cudaGraphLaunch(exec, cudaStreamPerThread) == cudaSuccess;
  const bool ran = cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
  cudaGraphExecDestroy(exec);
  return launched && ran;
}

int64_t FreeMemoryBytes() {
  size_t free = 0;
  size_t total = 0;
  cudaMemGetInfo(&free, &total);
  return static_cast<int64_t>(free);
}

}  // namespace gpushare::cuda
