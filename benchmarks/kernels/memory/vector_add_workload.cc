// The workload of vector_add.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/vector_add.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kBytesPerPass = 3.0 * sizeof(float) * kVectorAddFloatsPerPass;

class VectorAddWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceDramBytesPerUs, kernel.workers_per_sm);
    const uint32_t passes = WholeUnits(bytes, kBytesPerPass);
    distinct_block_tasks_ =
        RingWithin(options, grid_.x, kInputBytesMax, kBytesPerPass * 2 / 3 * passes);
    const uint64_t floats =
        static_cast<uint64_t>(distinct_block_tasks_) * passes * kVectorAddFloatsPerPass;
    Status status = a_.Allocate(floats * sizeof(float));
    if (status.ok()) status = a_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = b_.Allocate(floats * sizeof(float));
    if (status.ok()) status = b_.FillUniform(seed_ + 1, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = kBytesPerPass * passes;
    tolerance_ = 1.2e-7;  // one rounding of a value below 2
    reference_ns_ = 30;
    SetParams(VectorAddParams{a_.as<const float>(), b_.as<const float>(), output_.as<float>(),
                              distinct_block_tasks_, passes});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto at = static_cast<uint32_t>(index);
    expected[0] = static_cast<double>(Uniform(seed_, at, -1.0F, 1.0F)) +
                  static_cast<double>(Uniform(seed_ + 1, at, -1.0F, 1.0F));
  }

  DeviceBuffer a_;
  DeviceBuffer b_;
};

}  // namespace

extern const WorkloadMaker kMakeVectorAdd = MakeAs<VectorAddWorkload>;

}  // namespace gpushare::kernels
