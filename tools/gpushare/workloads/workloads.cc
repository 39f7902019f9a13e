#include "tools/gpushare/workloads/workloads.h"

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

const std::vector<LibraryShape>& Workloads::LibraryShapes(ShapeSet /*set*/) {
  static const std::vector<LibraryShape> kNone;
  return kNone;
}

const std::vector<GraphChoice>& Workloads::SizedQueries() {
  static const std::vector<GraphChoice> kNone;
  return kNone;
}

namespace {

class NoWorkloads final : public Workloads {
 public:
  bool CanRun(const std::string& /*kernel*/, bool in_profile) const override { return in_profile; }

  bool CountsBlocks(const std::string& /*kernel*/, gpushare_task_kind kind) const override {
    return kind == GPUSHARE_TASK_KERNEL;
  }

  bool FillKernel(const std::string& /*kernel*/, gpushare_task_kind kind,
                  gpushare_kernel_options& options) override {
    options.kind = kind;
    return true;
  }

  std::vector<TaskBinding> Bind(const std::string& /*app*/,
                                const std::vector<WorkItem>& tasks) override {
    std::vector<TaskBinding> bindings;
    bindings.reserve(tasks.size());
    for (const WorkItem& item : tasks) bindings.push_back(BindItem(item));
    return bindings;
  }

  void BeginRun() override {}
  bool Verify(const std::string& /*app*/, int64_t /*completed*/) override { return false; }
  HardwareFacts Hardware() const override { return {}; }

 private:
  static TaskBinding BindItem(const WorkItem& item) {
    TaskBinding binding;
    if (!item.is_copy()) {
      binding.block_tasks = item.block_tasks;
      return binding;
    }
    binding.kind = GPUSHARE_TASK_MEMCPY;
    binding.copy_size_bytes = item.bytes;
    binding.copy_direction = item.direction == CopyDirection::kHostToDevice
                                 ? GPUSHARE_COPY_HOST_TO_DEVICE
                                 : GPUSHARE_COPY_DEVICE_TO_HOST;
    binding.copy_pageable = item.pinned ? 0 : 1;
    return binding;
  }
};

}  // namespace

gpushare_task_options TaskOptionsOf(const TaskBinding& binding, gpushare_kernel* kernel) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  options.detached = 1;
  options.kind = binding.kind;
  options.kernel = kernel;
  options.block_tasks = binding.block_tasks;
  options.grid_x = binding.grid_x;
  options.grid_y = binding.grid_y;
  options.grid_z = binding.grid_z;
  options.arguments = binding.arguments;
  options.arguments_size_bytes = binding.arguments_size_bytes;
  options.declared_ns = binding.declared_ns;
  options.enqueue = binding.enqueue;
  options.enqueue_user = binding.enqueue_user;
  options.copy_size_bytes = binding.copy_size_bytes;
  options.copy_direction = binding.copy_direction;
  options.copy_pageable = binding.copy_pageable;
  options.copy_destination = binding.copy_destination;
  options.copy_source = binding.copy_source;
  return options;
}

std::unique_ptr<Workloads> MakeNoWorkloads() { return std::make_unique<NoWorkloads>(); }

std::unique_ptr<Workloads> MakeWorkloads(const DeviceFacts& facts) {
  if (facts.name != "cuda") return MakeNoWorkloads();
  std::unique_ptr<Workloads> workloads = MakeCudaWorkloads(facts.ordinal);
  if (workloads == nullptr) {
    throw RunError("The device is a GPU, and this program was built without CUDA.");
  }
  return workloads;
}

}  // namespace gpushare::tool
