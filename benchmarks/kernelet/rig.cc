#include "benchmarks/kernelet/rig.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "benchmarks/harness/failure.h"

namespace gpushare::kernelet {

namespace {

constexpr int32_t kTasksMax = 8192;  // 65,536 over the most apps, eight

Runtime Open(const RigOptions& options) {
  RuntimeOptions runtime;
  runtime.device = options.platform->device();
  runtime.drive = options.platform->drive();
  runtime.policy = "kernelet";
  runtime.splits_max = -1;
  runtime.seed = options.seed;
  if (!options.profile.empty()) runtime.profile_path = options.profile.c_str();
  return benchmarks::Take(Runtime::Create(runtime));
}

}  // namespace

Rig::Rig(const std::vector<std::string>& kernels, const Scheduler& scheduler,
         const RigOptions& options)
    : platform_(*options.platform),
      runtime_(Open(options)),
      sm_count_(benchmarks::Take(runtime_.Device()).sm_count) {
  scheduler(runtime_);
  std::map<std::string, Kernel> known;
  for (const std::string& name : kernels) {
    if (known.count(name) == 0) {
      KernelOptions kernel;
      kernel.name = name.c_str();
      platform_.FillKernel(name, kernel);
      known[name] = benchmarks::Take(runtime_.RegisterKernel(kernel));
    }
    AppOptions app;
    const std::string app_name = name + "-" + std::to_string(subjects_.size());
    app.name = app_name.c_str();
    app.app_class = GPUSHARE_CLASS_BEST_EFFORT;
    app.tasks_max = kTasksMax;
    Subject subject;
    subject.name = name;
    subject.kernel = known[name];
    subject.app = benchmarks::Take(runtime_.CreateApp(app));
    for (Queue& queue : subject.queues) queue = benchmarks::Take(subject.app.CreateQueue());
    subject.info = benchmarks::Take(runtime_.FindKernel(name));
    if (subject.info.block_task_ns <= 0) {
      benchmarks::Fail("The profile has no block task time of the kernel '" + name + "'.");
    }
    subjects_.push_back(std::move(subject));
  }
}

int64_t Rig::BlocksFor(size_t kernel, int64_t solo_ns) const {
  const KernelInfo& info = subjects_[kernel].info;
  const double waves = static_cast<double>(solo_ns) / static_cast<double>(info.block_task_ns);
  return std::max<int64_t>(1, std::llround(waves)) * info.workers_per_sm_max * sm_count_;
}

TaskOptions Rig::TaskOf(size_t kernel, int64_t block_tasks) const {
  TaskOptions task;
  task.kernel = subjects_[kernel].kernel.get();
  task.block_tasks = block_tasks;
  platform_.FillTask(subjects_[kernel].name, task);
  return task;
}

Ticket Rig::Submit(size_t kernel, const TaskOptions& task) {
  Subject& subject = subjects_[kernel];
  Ticket ticket = benchmarks::Take(subject.queues[subject.next].SubmitBe(task));
  subject.next = 1 - subject.next;
  return ticket;
}

void Rig::Verify(size_t kernel, const TaskOptions& task) const {
  platform_.Verify(subjects_[kernel].name, task.block_tasks);
}

}  // namespace gpushare::kernelet
