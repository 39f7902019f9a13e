// The workload of relu.

#include <algorithm>
#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/relu.h"

namespace gpushare::kernels {
namespace {

class ReluWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_pass = 2.0 * sizeof(float) * kReluFloatsPerPass;
    const uint32_t passes = kReluUnroll * UnitsPerBlockTask(options, kernel.workers_per_sm,
                                                            bytes_per_pass * kReluUnroll);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_pass * passes;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    const uint64_t floats =
        static_cast<uint64_t>(distinct_block_tasks_) * passes * kReluFloatsPerPass;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    tolerance_ = 0;  // nothing is rounded
    reference_ns_ = 20;
    SetParams(
        ReluParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_, passes});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const double value = Uniform(seed_, static_cast<uint32_t>(index), -1.0F, 1.0F);
    expected[0] = std::max(value, 0.0);
  }

  DeviceBuffer input_;
};

}  // namespace

extern const WorkloadMaker kMakeRelu = MakeAs<ReluWorkload>;

}  // namespace gpushare::kernels
