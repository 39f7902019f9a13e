// The workload of cp: the number of atoms follows the wanted length of a block task.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/cp.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 8192;  // 32 MB of results, a lattice of 4096 x 2048 points
constexpr uint32_t kAtomsStep = 4;

class CpWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double pairs = PerThread(options.block_task_us, kSpecialPerClock, kernel.workers_per_sm);
    atoms_ = WholeSteps(pairs / kCpPointsPerThread, kAtomsStep);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    Status status = input_.Allocate(atoms_ * 4 * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) {
      status = AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kCpPoints, 1);
    }
    if (!status.ok()) return status;
    work_per_block_task_ = static_cast<double>(atoms_) * kCpPoints;
    // A term errs by 4e-7 of charge / sqrt(s): rounded differences and squares, halved by the root,
    // and the root's own 1.8e-7. Those terms add up to less than one an atom and three at the
    // softening's limit of 32. Charges have either sign: partial sums stay below eight deviations
    // of 1.2 an atom and those three, and each addition rounds that by 2^-24.
    const double atoms = atoms_;
    tolerance_ = 4e-7 * (atoms + 96) + atoms * kRoundingUnit * (10 * std::sqrt(atoms) + 96);
    reference_ns_ = atoms_ * 25.0;
    SetParams(
        CpParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_, atoms_});
    return {};
  }

 private:
  double AtomAt(uint32_t index) const { return Uniform(seed_, index, -1.0F, 1.0F); }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const CpPoint point = CpPointOf(static_cast<uint32_t>(index / kCpPoints),
                                    static_cast<uint32_t>(index % kCpPoints));
    for (uint32_t i = 0; i < atoms_; ++i) {
      const double dx = point.x - AtomAt(4 * i);
      const double dy = point.y - AtomAt(4 * i + 1);
      const double z = AtomAt(4 * i + 2);
      expected[0] += AtomAt(4 * i + 3) / std::sqrt(dx * dx + dy * dy + z * z + kCpSoftening);
    }
  }

  DeviceBuffer input_;
  uint32_t atoms_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeCp = MakeAs<CpWorkload>;

}  // namespace gpushare::kernels
