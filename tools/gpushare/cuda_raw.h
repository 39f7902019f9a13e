// Bare CUDA launches of one app's tasks on a stream of its own: what raw_run.h drives on a GPU.
//
// Marks are events without timing: free on the GPU, 0.1 us to poll. Threads: one at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_RAW_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_RAW_H_

#include <gpushare/device/kernel_variants.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tools/gpushare/cuda_blas.h"
#include "tools/gpushare/workloads.h"

namespace gpushare::tool {

class CudaRawApp final : public RawApp {
 public:
  // Makes `ordinal` the thread's current device. `hung` is set once the work of such an app does
  // not end: the app's own resources then stay until the process ends, as the buffers that it was
  // given must. The next app does not wait.
  CudaRawApp(int ordinal, const RawOptions& options, bool& hung);
  ~CudaRawApp() override;

  // The app's tasks, in order.
  using Enqueue = std::function<void(void* stream)>;
  void AddTask(Enqueue enqueue) { tasks_.push_back(std::move(enqueue)); }
  // Captures what `enqueue` does, once; the task launches the graph.
  void AddGraph(const Enqueue& enqueue);
  // The original grid of a kernel; its arguments stay the caller's.
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
