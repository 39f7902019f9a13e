// The workload of myocyte.

#include <algorithm>
#include <memory>
#include <string>

#include "benchmarks/kernels/compute/myocyte.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 524288;  // 268 MB, of which a task takes what its block tasks need
constexpr double kStepUs = 20;      // distance of the yield points

class MyocyteWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    steps_ =
        options.steps > 0 ? options.steps : static_cast<uint32_t>(options.block_task_us / kStepUs);
    steps_ = std::max(1U, steps_);
    const double multiply_adds =
        PerThread(options.block_task_us, kFfmaPerClock, kernel.workers_per_sm) * kThreadsPerBlock /
        kMyocyteThreads;
    iterations_ = WholeSteps(multiply_adds / kMyocyteMultiplyAdds / steps_, 1);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    if (distinct_block_tasks_ < grid_.x) {
      return InvalidOption("myocyte has " + std::to_string(grid_.x) + " block tasks, and at most " +
                           std::to_string(distinct_block_tasks_) +
                           " have a place of their own to be saved in.");
    }
    const Status status =
        AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kMyocyteThreads, 2);
    if (!status.ok()) return status;
    const double iterations = static_cast<double>(iterations_) * steps_;
    work_per_block_task_ = iterations * kMyocyteMultiplyAdds * kMyocyteThreads;
    tolerance_ = 0;
    reference_ns_ = iterations * 150;
    SetParams(
        MyocyteParams{output_.as<float>(), distinct_block_tasks_, iterations_, steps_, seed_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const float current = MyocyteCurrent(seed_, static_cast<uint32_t>(index));
    MyocyteCell cell = {-1, 1};
    const uint64_t iterations = static_cast<uint64_t>(iterations_) * steps_;
    for (uint64_t i = 0; i < iterations; ++i) cell = MyocyteIterate(cell, current);
    expected[0] = cell.v;
    expected[1] = cell.w;
  }

  uint32_t iterations_ = 0;
  uint32_t steps_ = 1;
};

}  // namespace

extern const WorkloadMaker kMakeMyocyte = MakeAs<MyocyteWorkload>;

}  // namespace gpushare::kernels
