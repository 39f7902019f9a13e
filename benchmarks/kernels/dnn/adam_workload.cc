// The workload of adam. The output is the new weights, then the new first moments, then the second.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/adam.h"

namespace gpushare::kernels {
namespace {

constexpr double kBytesPerWeight = 28;
constexpr float kRate = 1e-3F;
constexpr float kEpsilon = 1e-8F;
constexpr float kDecayFirst = 0.9F;
constexpr float kDecaySecond = 0.999F;

class AdamWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_pass = kBytesPerWeight * kAdamFloatsPerPass;
    const uint32_t passes = UnitsPerBlockTask(options, kernel.workers_per_sm, bytes_per_pass);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_pass * passes;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    weights_in_all_ = static_cast<uint64_t>(distinct_block_tasks_) * passes * kAdamFloatsPerPass;
    Status status = Fill(&weights_, seed_, -1.0F, 1.0F);
    if (status.ok()) status = Fill(&gradients_, seed_ + 1, -1.0F, 1.0F);
    if (status.ok()) status = Fill(&first_, seed_ + 2, -1.0F, 1.0F);
    if (status.ok()) status = Fill(&second_, seed_ + 3, kSecondMin, 1.0F);
    if (status.ok()) status = AllocateOutput(3 * weights_in_all_, 1);
    if (!status.ok()) return status;
    // Moments below 1 have three roundings of 6e-8 at most between them; the step is below 0.01 and
    // errs by 1e-6 of itself, and the new weight, below 2, is rounded once.
    tolerance_ = 1.9e-7;
    reference_ns_ = 80;
    float* const out = output_.as<float>();
    SetParams(AdamParams{weights_.as<const float>(), gradients_.as<const float>(),
                         first_.as<const float>(), second_.as<const float>(), out,
                         out + weights_in_all_, out + 2 * weights_in_all_, distinct_block_tasks_,
                         passes, kRate, kEpsilon, kDecayFirst, kDecaySecond});
    return {};
  }

 private:
  static constexpr float kSecondMin = 0.0125F;  // so that a step is below 9 rates

  Status Fill(DeviceBuffer* buffer, uint32_t seed, float low, float high) const {
    const Status status = buffer->Allocate(weights_in_all_ * sizeof(float));
    return status.ok() ? buffer->FillUniform(seed, low, high) : status;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto at = static_cast<uint32_t>(index % weights_in_all_);
    const double weight = Uniform(seed_, at, -1.0F, 1.0F);
    const double gradient = Uniform(seed_ + 1, at, -1.0F, 1.0F);
    const double decay_first = kDecayFirst;
    const double decay_second = kDecaySecond;
    const double first =
        decay_first * Uniform(seed_ + 2, at, -1.0F, 1.0F) + (1 - decay_first) * gradient;
    const double second = decay_second * Uniform(seed_ + 3, at, kSecondMin, 1.0F) +
                          (1 - decay_second) * gradient * gradient;
    const double step = kRate * first / (std::sqrt(second) + kEpsilon);
    const double all[] = {weight - step, first, second};
    expected[0] = all[index / weights_in_all_];
  }

  DeviceBuffer weights_;
  DeviceBuffer gradients_;
  DeviceBuffer first_;
  DeviceBuffer second_;
  uint64_t weights_in_all_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeAdam = MakeAs<AdamWorkload>;

}  // namespace gpushare::kernels
