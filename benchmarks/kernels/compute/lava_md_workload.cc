// The workload of lava_md: the boxes of a block task follow its wanted length.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/lava_md.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kBoxesMax = 8192;  // of a ring: 75 MB of particles
constexpr double kInstructionsPerPair = 12;
constexpr double kPairsPerBox =
    static_cast<double>(kLavaNeighbours) * kLavaParticles * kLavaParticles;

class LavaMdWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double instructions =
        PerThread(options.block_task_us, kFfmaPerClock, kernel.workers_per_sm) * kThreadsPerBlock;
    boxes_ = WholeSteps(instructions / (kInstructionsPerPair * kPairsPerBox), 1);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, std::max(1U, kBoxesMax / boxes_));
    const uint64_t boxes = static_cast<uint64_t>(distinct_block_tasks_) * boxes_;
    Status status =
        input_.Allocate((boxes + 2) * kLavaBoxesInSlice * kLavaParticles * 4 * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, 0.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(boxes * kLavaParticles, 4);
    if (!status.ok()) return status;
    work_per_block_task_ = kInstructionsPerPair * kPairsPerBox * boxes_;
    // A term is below 1/2 in charge and below 1 in 2^-u and in 2^-u * difference (0.85 at most).
    // Its exponent is below 9 and errs by 3e-7 of itself, but where 2^-u matters, u * 2^-u < 0.54:
    // with the intrinsic's 2.4e-7 and a product's rounding 5e-7 in all, on average half of that of
    // 1728 terms with charges of 1/4. Partial sums of a thread stay below eight deviations of 216
    // terms (0.29 each), 34, and in the end of 1728, 97: 216 and 3 roundings.
    tolerance_ = 1728 * 0.25 * 5e-7 + kRoundingUnit * (216 * 34 + 3 * 97);
    reference_ns_ = kLavaNeighbours * kLavaParticles * 30.0;
    SetParams(
        LavaMdParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_, boxes_});
    return {};
  }

 private:
  // The float32 sums of the kernel: both sides start from the same places.
  float At(uint64_t word, float offset) const {
    return Uniform(seed_, static_cast<uint32_t>(word), 0.0F, 1.0F) + offset;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint64_t first = index / kLavaParticles * kLavaBoxesInSlice * kLavaParticles;
    constexpr uint32_t kHome = (kLavaBoxesInSlice + kLavaHomeInSlice) * kLavaParticles;
    const uint64_t mine = 4 * (first + kHome + index % kLavaParticles);
    const double x = At(mine, 0);
    const double y = At(mine + 1, 0);
    const double z = At(mine + 2, 0);
    for (uint32_t i = 0; i < kLavaNeighbours * kLavaParticles; ++i) {
      const LavaMdOrigin origin = LavaMdOriginOf(i / kLavaParticles);
      const uint64_t word = 4 * (first + i);
      const double dx = x - At(word, origin.x);
      const double dy = y - At(word + 1, origin.y);
      const double dz = z - At(word + 2, origin.z);
      const double part =
          At(word + 3, -0.5F) * std::exp2(-kLavaDecay * (dx * dx + dy * dy + dz * dz));
      expected[0] += part;
      expected[1] += part * dx;
      expected[2] += part * dy;
      expected[3] += part * dz;
    }
  }

  DeviceBuffer input_;
  uint32_t boxes_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeLavaMd = MakeAs<LavaMdWorkload>;

}  // namespace gpushare::kernels
