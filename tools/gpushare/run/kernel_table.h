// The kernels of a run, registered once by name, and the tasks that use them.
//
// Threads: the load thread, before the first submission.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_KERNEL_TABLE_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_KERNEL_TABLE_H_

#include <map>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/run_outcome.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

class KernelTable {
 public:
  KernelTable(gpushare_runtime* runtime, Workloads& workloads)
      : runtime_(runtime), workloads_(workloads) {}
  // Null for opaque work, which has no registered kernel.
  gpushare_kernel* Get(const std::string& name);
  // Registers the fused kernels of two kernels that are in the table. On a GPU (`real_time`) only
  // those that this program has.
  void Fuse(const std::vector<FusedPair>& pairs, bool real_time);
  Workloads& workloads() const { return workloads_; }
  std::vector<NamedId> Names() const;

 private:
  gpushare_runtime* runtime_;
  Workloads& workloads_;
  std::map<std::string, KernelHandle> kernels_;
  std::vector<FusedKernelHandle> fused_;
};

// The tasks of an app, ready to submit: options without callback, query and arrival.
std::vector<gpushare_task_options> BindTasks(const std::string& app,
                                             const std::vector<WorkItem>& items,
                                             KernelTable& kernels);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_KERNEL_TABLE_H_
