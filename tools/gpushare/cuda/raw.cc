#include "tools/gpushare/cuda/raw.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

CudaRawApp::CudaRawApp(int ordinal, const RawOptions& options, bool& hung)
    : options_(options), hung_(hung) {
  CheckCuda(cudaSetDevice(ordinal), "Choosing the GPU");
  int lowest = 0;
  int highest = 0;
  CheckCuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "Asking for stream priorities");
  cudaStream_t stream = nullptr;
  const cudaError_t code = options.priority == RawPriority::kNormal
                               ? cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)
                               : cudaStreamCreateWithPriority(
                                     &stream, cudaStreamNonBlocking,
                                     options.priority == RawPriority::kHighest ? highest : lowest);
  CheckCuda(code, "Creating a stream");
  stream_ = stream;
  for (size_t i = 0; i < options.marks; ++i) {
    cudaEvent_t event = nullptr;
    CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Creating an event");
    marks_.push_back(event);
  }
}

// Ignores an error in a destructor: the run has seen it, or the process ends because of it.
CudaRawApp::~CudaRawApp() {
  if (!Drained()) {
    // Freeing memory or destroying a handle would wait for the device without a limit.
    if (!hung_) {
      std::fprintf(stderr,
                   "gpushare: Work without the library does not end within %.1f s; what it uses is "
                   "freed when the process ends.\n",
                   static_cast<double>(options_.drain_ns) * 1e-9);
    }
    hung_ = true;
    static_cast<void>(blas_.release());
    workspace_.Leave();
    return;
  }
  for (const void* symbol : carved_) {
    cudaFuncSetAttribute(symbol, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutDefault);
  }
  for (void* graph : graphs_) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
  for (void* mark : marks_) cudaEventDestroy(static_cast<cudaEvent_t>(mark));
  blas_.reset();
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
}

// Polls, because cudaStreamSynchronize would never return from a hung kernel.
bool CudaRawApp::Drained() {
  using Clock = std::chrono::steady_clock;
  const auto give_up = Clock::now() + std::chrono::nanoseconds(hung_ ? 0 : options_.drain_ns);
  while (cudaStreamQuery(static_cast<cudaStream_t>(stream_)) == cudaErrorNotReady) {
    if (Clock::now() >= give_up) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void CudaRawApp::AddGraph(const Enqueue& enqueue) {
  auto* stream = static_cast<cudaStream_t>(stream_);
  // Relaxed mode, because the captured function may allocate buffers.
  CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "Beginning a capture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue(stream_);
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  CheckCuda(cudaStreamEndCapture(stream, &graph), "Ending a capture");
  cudaGraphExec_t exec = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphDestroy(graph);
  CheckCuda(code, "Instantiating a graph");
  graphs_.push_back(exec);
  CheckCuda(cudaGraphUpload(exec, stream), "Uploading a graph");
  AddTask([exec](void* on) {
    CheckCuda(cudaGraphLaunch(exec, static_cast<cudaStream_t>(on)), "Launching a graph");
  });
}

void CudaRawApp::AddKernel(const gpushare_kernel_variants& variants, const TaskBinding& binding) {
  const void* symbol = variants.original_symbol;
  if (options_.carveout_max) {
    CheckCuda(cudaFuncSetAttribute(symbol, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutMaxShared),
              "Preferring the maximum shared-memory carve-out");
    carved_.push_back(symbol);
  }
  const dim3 grid(static_cast<unsigned>(binding.grid_x), static_cast<unsigned>(binding.grid_y),
                  static_cast<unsigned>(binding.grid_z));
  const dim3 block(variants.threads_per_block);
  const size_t shared = variants.dynamic_shared_bytes;
  // The kernel takes its parameters as one struct, which the launch copies.
  void* params = const_cast<void*>(binding.arguments);  // NOLINT: CUDA only reads it
  AddTask([=](void* on) {
    void* arguments[] = {params};
    CheckCuda(cudaLaunchKernel(symbol, grid, block, static_cast<void**>(arguments), shared,
                               static_cast<cudaStream_t>(on)),
              "Launching a kernel");
  });
}

void CudaRawApp::AddGemm(const Gemm& gemm) {
  if (blas_ == nullptr) {
    blas_ = std::make_unique<Blas>();
    workspace_ = DeviceMemory(Blas::kWorkspaceBytes);
    if (const int status = blas_->Use(stream_, 0, workspace_.data()); status != 0) {
      throw RunError("cuBLAS refuses a stream with the status " + std::to_string(status) + ".");
    }
  }
  AddTask([this, gemm](void* /*stream*/) {
    const int status = blas_->Enqueue(gemm);
    if (status == 0) return;
    throw RunError("A GEMM fails with the cuBLAS status " + std::to_string(status) + ".");
  });
}

void CudaRawApp::Mark(size_t mark) {
  CheckCuda(
      cudaEventRecord(static_cast<cudaEvent_t>(marks_[mark]), static_cast<cudaStream_t>(stream_)),
      "Recording an event");
}

bool CudaRawApp::Reached(size_t mark) {
  const cudaError_t code = cudaEventQuery(static_cast<cudaEvent_t>(marks_[mark]));
  if (code == cudaErrorNotReady) return false;
  CheckCuda(code, "Work without the library");
  return true;
}

}  // namespace gpushare::tool
