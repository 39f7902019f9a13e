#include "tools/gpushare/run/kernel_table.h"

#include <algorithm>
#include <cstddef>

namespace gpushare::tool {

gpushare_kernel* KernelTable::Get(const std::string& name) {
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second.get();
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  const gpushare_status known = gpushare_kernel_info_by_name(runtime_, name.c_str(), &info);
  if (known != GPUSHARE_OK) {
    // This call gives the error for an unknown name. A kernel with a program needs no record.
    if (known != GPUSHARE_NOT_FOUND || !workloads_.CanRun(name, false)) Check(known);
    info.kind = GPUSHARE_TASK_DEFAULT;
  }
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = name.c_str();
  if (!workloads_.FillKernel(name, info.kind, options)) return nullptr;
  gpushare_kernel* kernel = nullptr;
  Check(gpushare_kernel_register(runtime_, &options, &kernel));
  kernels_.emplace(name, KernelHandle(kernel));
  return kernel;
}

void KernelTable::Fuse(const std::vector<FusedPair>& pairs, bool real_time) {
  for (const FusedPair& pair : pairs) {
    const auto tensor = kernels_.find(pair.tensor);
    const auto cuda = kernels_.find(pair.cuda);
    if (tensor == kernels_.end() || cuda == kernels_.end()) continue;
    gpushare_fused_kernel_options options = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
    options.tensor_blocks = pair.tensor_blocks;
    options.cuda_blocks = pair.cuda_blocks;
    if (real_time) {
      const std::vector<FusedChoice> choices = workloads_.FusedOf({pair.tensor, pair.cuda});
      const auto choice = std::find_if(choices.begin(), choices.end(), [&](const FusedChoice& one) {
        return one.name == pair.name;
      });
      if (choice == choices.end()) continue;
      options.tensor_blocks = choice->tensor_blocks;
      options.cuda_blocks = choice->cuda_blocks;
      options.function = choice->function;
      options.threads_per_block = choice->threads_per_block;
      options.dynamic_shared_memory_bytes = choice->dynamic_shared_memory_bytes;
      options.blocks_per_sm = choice->blocks_per_sm;
    }
    options.name = pair.name.c_str();
    options.tensor_part = tensor->second.get();
    options.cuda_part = cuda->second.get();
    options.opportune_load_ratio = pair.load_ratio;
    options.opportune_duration_ratio = pair.duration_ratio;
    gpushare_fused_kernel* fused = nullptr;
    Check(gpushare_fused_kernel_register(runtime_, &options, &fused));
    fused_.emplace_back(fused);
  }
}

std::vector<NamedId> KernelTable::Names() const {
  std::vector<NamedId> names;
  for (const auto& [name, kernel] : kernels_) {
    names.push_back({gpushare_kernel_id(kernel.get()), name, false});
  }
  return names;
}

std::vector<gpushare_task_options> BindTasks(const std::string& app,
                                             const std::vector<WorkItem>& items,
                                             KernelTable& kernels) {
  const std::vector<TaskBinding> bindings = kernels.workloads().Bind(app, items);
  std::vector<gpushare_task_options> tasks;
  tasks.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    gpushare_kernel* kernel = items[i].is_copy() ? nullptr : kernels.Get(items[i].kernel);
    tasks.push_back(TaskOptionsOf(bindings[i], kernel));
  }
  return tasks;
}

}  // namespace gpushare::tool
