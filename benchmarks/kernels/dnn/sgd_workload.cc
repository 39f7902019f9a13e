// The workload of sgd. The output is the new weights, then the new velocities.

#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/sgd.h"

namespace gpushare::kernels {
namespace {

constexpr double kBytesPerWeight = 20;
constexpr float kRate = 0.01F;
constexpr float kMomentum = 0.9F;
constexpr float kDecay = 1e-3F;

class SgdWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_pass = kBytesPerWeight * kSgdFloatsPerPass;
    const uint32_t passes = UnitsPerBlockTask(options, kernel.workers_per_sm, bytes_per_pass);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_pass * passes;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    weights_in_all_ = static_cast<uint64_t>(distinct_block_tasks_) * passes * kSgdFloatsPerPass;
    Status status = Fill(&weights_, seed_);
    if (status.ok()) status = Fill(&gradients_, seed_ + 1);
    if (status.ok()) status = Fill(&velocities_, seed_ + 2);
    if (status.ok()) status = AllocateOutput(2 * weights_in_all_, 1);
    if (!status.ok()) return status;
    // Two roundings of values below 2 make a new velocity; its error counts a hundredth in the new
    // weight, which is rounded once.
    tolerance_ = 2.4e-7;
    reference_ns_ = 60;
    SetParams(SgdParams{weights_.as<const float>(), gradients_.as<const float>(),
                        velocities_.as<const float>(), output_.as<float>(),
                        output_.as<float>() + weights_in_all_, distinct_block_tasks_, passes, kRate,
                        kMomentum, kDecay});
    return {};
  }

 private:
  Status Fill(DeviceBuffer* buffer, uint32_t seed) const {
    const Status status = buffer->Allocate(weights_in_all_ * sizeof(float));
    return status.ok() ? buffer->FillUniform(seed, -1.0F, 1.0F) : status;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto at = static_cast<uint32_t>(index % weights_in_all_);
    const double weight = Uniform(seed_, at, -1.0F, 1.0F);
    const double gradient = Uniform(seed_ + 1, at, -1.0F, 1.0F);
    const double velocity =
        kMomentum * double{Uniform(seed_ + 2, at, -1.0F, 1.0F)} + (gradient + kDecay * weight);
    expected[0] = index < weights_in_all_ ? weight - kRate * velocity : velocity;
  }

  DeviceBuffer weights_;
  DeviceBuffer gradients_;
  DeviceBuffer velocities_;
  uint64_t weights_in_all_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeSgd = MakeAs<SgdWorkload>;

}  // namespace gpushare::kernels
