// The workload of mrif: the samples of a bin follow the wanted length of a block task.

#include <algorithm>
#include <memory>

#include "benchmarks/kernels/compute/mrif.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 4096;  // 34 MB of results
// Instructions for a sample and a cell: distance in y, s, three for the weight, two sums. The
// distance in x takes two for each four cells of a thread.
constexpr double kInstructionsPerPair = 7 + 2.0 / kMrifCellsPerThread;
constexpr double kInputBytesMax = 1 << 30;

class MrifWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double pairs = PerThread(options.block_task_us, kFfmaPerClock, kernel.workers_per_sm) /
                         kInstructionsPerPair;
    samples_per_bin_ = WholeSteps(pairs / (kMrifBins * kMrifCellsPerThread), 1);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double region_bytes = 4.0 * sizeof(float) * kMrifBinsOfRegion * samples_per_bin_;
    const auto ring_max =
        static_cast<uint32_t>(std::min<double>(kRing, kInputBytesMax / region_bytes));
    distinct_block_tasks_ = RingOf(options, grid_.x, ring_max);
    const uint64_t bins =
        static_cast<uint64_t>(distinct_block_tasks_) * kMrifBinsOfRegion + 2 * kMrifBinsY;
    Status status = input_.Allocate(bins * samples_per_bin_ * 4 * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, 0.0F, 1.0F);
    if (status.ok()) {
      status = AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kMrifCells, 2);
    }
    if (!status.ok()) return status;
    work_per_block_task_ =
        kInstructionsPerPair * kMrifBins * samples_per_bin_ * static_cast<double>(kMrifCells);
    // s errs by 4e-7 (two squares and two roundings at 1), the weight by 1.5e-6 (its slope is 3.1
    // at most, its value below 2.3 in three roundings): halved by the parts' limit of 1/2. The
    // samples within the radius are pi a bin's on average, below 9, where sums are largest; each
    // addition rounds a sum of so many terms of at most 1.14 by 2^-24.
    const double inside = 9.0 * samples_per_bin_;
    tolerance_ = inside * (0.8e-6 + kRoundingUnit * 1.14 * inside);
    reference_ns_ = kMrifBins * samples_per_bin_ * 20.0;
    SetParams(MrifParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                         samples_per_bin_});
    return {};
  }

 private:
  // The float32 sums of the kernel: both sides start from the same places.
  float At(uint64_t word, float offset) const {
    return Uniform(seed_, static_cast<uint32_t>(word), 0.0F, 1.0F) + offset;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint64_t slot = index / kMrifCells;
    const auto cell = static_cast<uint32_t>(index % kMrifCells);
    const double x = MrifCell(cell % kMrifCellsAcross);
    const double y = MrifCell(cell / kMrifCellsAcross);
    for (uint32_t i = 0; i < kMrifBins * samples_per_bin_; ++i) {
      const MrifBinOrigin origin = MrifOriginOf(i / samples_per_bin_);
      const uint64_t word = 4 * (slot * kMrifBinsOfRegion * samples_per_bin_ + i);
      const double dx = x - At(word, origin.x);
      const double dy = y - At(word + 1, origin.y);
      const double s = 1 - dx * dx - dy * dy;
      if (s <= 0) continue;
      const double weight = s * (kMrifWindow1 + s * (kMrifWindow2 + s * kMrifWindow3));
      expected[0] += weight * At(word + 2, -0.5F);
      expected[1] += weight * At(word + 3, -0.5F);
    }
  }

  DeviceBuffer input_;
  uint32_t samples_per_bin_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeMrif = MakeAs<MrifWorkload>;

}  // namespace gpushare::kernels
