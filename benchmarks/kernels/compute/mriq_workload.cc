// The workload of mriq: the number of samples follows the wanted length of a block task.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/mriq.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 16384;  // 34 MB of results
constexpr double kResultsPerSample = 2;

class MriqWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double results =
        PerThread(options.block_task_us, kSpecialPerClock, kernel.workers_per_sm);
    samples_ = WholeSteps(results / kResultsPerSample, kMriqUnroll);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    Status status = input_.Allocate(samples_ * 4 * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -kMriqSampleMax, kMriqSampleMax);
    if (status.ok()) {
      status = AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kThreadsPerBlock, 2);
    }
    if (!status.ok()) return status;
    work_per_block_task_ = kResultsPerSample * samples_ * kThreadsPerBlock;
    // A term: the phase is rounded below 2, 4 and 8 turns (4.2e-7 turns, 2.7e-6), its product with
    // 2 pi errs by 2.2e-7, the intrinsic by 3.6e-7 (2^-21.4): 3.4e-6 of the magnitude, which is 4
    // at most. The sum: a term has variance 16 / 3 / 2, so that partial sums stay below eight
    // deviations, 13.1 * sqrt(samples), and each addition rounds by 2^-24 of that.
    const double largest_sum = 13.1 * std::sqrt(static_cast<double>(samples_)) + kMriqSampleMax;
    tolerance_ = samples_ * (3.4e-6 * kMriqSampleMax + kRoundingUnit * largest_sum);
    reference_ns_ = samples_ * 60.0;
    SetParams(MriqParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                         samples_, seed_});
    return {};
  }

 private:
  double SampleAt(uint32_t index) const {
    return Uniform(seed_, index, -kMriqSampleMax, kMriqSampleMax);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    constexpr double kTurn = 6.28318530717958648;
    const auto voxel = static_cast<uint32_t>(index);
    const double x = MriqCoordinate(seed_, voxel, 0);
    const double y = MriqCoordinate(seed_, voxel, 1);
    const double z = MriqCoordinate(seed_, voxel, 2);
    for (uint32_t i = 0; i < samples_; ++i) {
      const double turns = SampleAt(4 * i) * x + SampleAt(4 * i + 1) * y + SampleAt(4 * i + 2) * z;
      expected[0] += SampleAt(4 * i + 3) * std::cos(kTurn * turns);
      expected[1] += SampleAt(4 * i + 3) * std::sin(kTurn * turns);
    }
  }

  DeviceBuffer input_;
  uint32_t samples_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeMriq = MakeAs<MriqWorkload>;

}  // namespace gpushare::kernels
