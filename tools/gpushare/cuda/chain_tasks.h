// The tasks of an LC chain that an app submits one by one, instead of as one graph.
//
// Threads: one at a time, between runs; a binding may be submitted from any thread.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_CHAIN_TASKS_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_CHAIN_TASKS_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "tools/gpushare/cuda/chain.h"
#include "tools/gpushare/cuda/raw.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

// Whether `task` is the GELU of a chain: a kernel with block tasks, unlike a chain's GEMMs.
bool IsGelu(const std::string& task);

// Whole layers of a chain in order, or, for calibration, a single task of it. The input of a single
// task is arbitrary and its result is not checked.
class ChainOfTasks {
 public:
  // Throws InputError if `items` are not whole layers of `family` and not a single task.
  ChainOfTasks(ChainPrograms& chains, const ChainFamily& family, const std::string& app,
               const std::vector<WorkItem>& items);

  bool single() const { return layers_ == 0; }
  const TaskBinding& binding(size_t index) const { return bindings_[index]; }
  void BeginRun() {
    if (!single()) chains_.Poison(family_, layers_, buffers_);
  }
  // Adds task `index` to `raw` as a bare launch. This object outlives `raw`.
  void AddRaw(CudaRawApp& raw, size_t index);
  // Throws RunError, which names `app`, if the chain's result is wrong.
  void Verify(const std::string& app);

 private:
  void CheckItem(const std::string& app, size_t index, const WorkItem& item,
                 const ChainStep& step) const;
  void BindSingle(const std::string& task);
  void Bind(int index);

  ChainPrograms& chains_;
  const ChainFamily& family_;
  int layers_ = 0;
  ChainBuffers buffers_;
  // Arguments of the bindings; a deque keeps their addresses.
  std::deque<GeluParams> gelus_;
  std::deque<gpushare_library_arguments> gemms_;
  std::vector<TaskBinding> bindings_;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_CHAIN_TASKS_H_
