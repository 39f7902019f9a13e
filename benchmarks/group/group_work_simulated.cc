// Kernels with a simulation record. See group_work.h.

#include "benchmarks/group/group_work.h"
#include "benchmarks/harness/failure.h"

namespace gpushare::benchmarks {
namespace {

// Block tasks of a kernel that takes this long: rounds of SMs x workers.
constexpr int64_t kWorkersPerSm = 8;
constexpr int64_t kSms = 132;
constexpr int64_t BlockTasks(int64_t solo_ns) {
  return solo_ns / kBlockTaskNs * kSms * kWorkersPerSm;
}

class SimulatedWork final : public GroupWork {
 public:
  explicit SimulatedWork(Group& group)
      : query_(Register(group, "query")), batch_(Register(group, "batch")) {}

  const GroupKernel* Kernel(GroupJob job) const override {
    return job == GroupJob::kQuery ? query_ : batch_;
  }
  void Prepare(GroupJob job, int /*gpu*/, gpushare_task_options* task) const override {
    task->block_tasks = BlockTasks(job == GroupJob::kQuery ? kQueryNs : kBatchNs);
  }
  void EnqueuePart(int /*gpu*/, void* /*stream*/) const override {}  // the region takes its bound
  void Verify() const override {}                                    // no kernel ran

 private:
  static const GroupKernel* Register(Group& group, const char* name) {
    SimulationRecord record;
    record.block_task_ns = kBlockTaskNs;
    record.demand.issue = 0.5;
    KernelOptions options;
    options.name = name;
    options.evictable = GPUSHARE_CHOICE_YES;
    options.simulation = &record;
    return Take(group.RegisterKernel(options));
  }

  const GroupKernel* query_;
  const GroupKernel* batch_;
};

}  // namespace

std::unique_ptr<GroupWork> MakeSimulatedWork(Group& group) {
  return std::make_unique<SimulatedWork>(group);
}

}  // namespace gpushare::benchmarks
