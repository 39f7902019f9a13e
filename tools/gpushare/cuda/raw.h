// Bare CUDA launches of one app's tasks on the app's own stream; raw_run.h drives them on a GPU.
//
// Marks are events without timing, which cost the GPU nothing and the host 0.1 us a poll. Threads:
// one at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_RAW_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_RAW_H_

#include <gpushare/device/kernel_variants.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tools/gpushare/cuda/blas.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

class CudaRawApp final : public RawApp {
 public:
  // Makes `ordinal` the thread's current device. Sets `hung` if the work of such an app does not
  // end. The app's resources then stay until the process ends, and so must the buffers that it was
  // given. The next app does not wait.
  CudaRawApp(int ordinal, const RawOptions& options, bool& hung);
  ~CudaRawApp() override;

  // The app's tasks, in order.
  using Enqueue = std::function<void(void* stream)>;
  void AddTask(Enqueue enqueue) { tasks_.push_back(std::move(enqueue)); }
  // Captures the work of `enqueue` once as a graph; the task launches the graph.
  void AddGraph(const Enqueue& enqueue);
  // The original grid of a kernel. The caller keeps its arguments alive.
  void AddKernel(const gpushare_kernel_variants& variants, const TaskBinding& binding);
  // `gemm` with the app's own handle and workspace.
  void AddGemm(const Gemm& gemm);

  bool best_effort() const { return options_.best_effort; }

  void Launch(size_t task) override { tasks_[task](stream_); }
  void Mark(size_t mark) override;
  bool Reached(size_t mark) override;

 private:
  bool Drained();

  RawOptions options_;
  bool& hung_;
  void* stream_ = nullptr;
  std::vector<void*> marks_;   // cudaEvent_t
  std::vector<void*> graphs_;  // cudaGraphExec_t
  std::vector<const void*> carved_;
  std::unique_ptr<Blas> blas_;
  DeviceMemory workspace_;
  std::vector<Enqueue> tasks_;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_RAW_H_
