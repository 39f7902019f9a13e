// The tasks of an app on a GPU that stand by themselves: a kernel of the catalogue, a copy, a graph
// and a GEMM. Each has its own buffers, and checks its own result.
//
// Threads: one at a time, between runs; a binding may be submitted from any thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_TASKS_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_TASKS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tools/gpushare/cuda/be_kernels.h"
#include "tools/gpushare/cuda/chain.h"
#include "tools/gpushare/cuda/opaque_gemm.h"
#include "tools/gpushare/cuda/raw.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

// One task of an app: its fields for a submit, and the check of its result.
class BoundTask {
 public:
  virtual ~BoundTask() = default;
  // Clears the output, so that the result of an earlier run cannot pass for this run's.
  virtual void BeginRun() = 0;
  // Throws RunError, which names `app`, if the result is wrong.
  virtual void Verify(const std::string& app) = 0;
  // Adds the same task to `raw` as a bare launch. The task outlives `raw`.
  virtual void AddRaw(CudaRawApp& raw) = 0;
  const TaskBinding& binding() const { return binding_; }

 protected:
  TaskBinding binding_;
};

// Each throws RunError if the device has no memory for the task.
std::unique_ptr<BoundTask> MakeCatalogueTask(const BeKernel& kernel, int64_t block_tasks, int sms);
std::unique_ptr<BoundTask> MakeCopyTask(const WorkItem& item);
// `chains` outlives the task and has prepared the graph.
std::unique_ptr<BoundTask> MakeGraphTask(ChainPrograms& chains, std::string name);
// `count` GEMMs in a row; `gemm` outlives the task. Opaque work, or else one library call.
std::unique_ptr<BoundTask> MakeGemmTask(OpaqueGemm& gemm, bool opaque, int64_t count);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_TASKS_H_
