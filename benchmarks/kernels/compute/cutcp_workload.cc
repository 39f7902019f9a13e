// The workload of cutcp: the atoms of a bin follow the wanted length of a block task.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/cutcp.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 8192;  // 32 MB of results
constexpr double kInputBytesMax = 1 << 30;

class CutcpWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double pairs = PerThread(options.block_task_us, kSpecialPerClock, kernel.workers_per_sm);
    atoms_per_bin_ = WholeSteps(pairs / (kCutcpBins * kCutcpPointsPerThread), 1);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double slice_bytes = 4.0 * sizeof(float) * kCutcpBinsInSlice * atoms_per_bin_;
    const auto ring_max =
        static_cast<uint32_t>(std::min<double>(kRing, kInputBytesMax / slice_bytes));
    distinct_block_tasks_ = RingOf(options, grid_.x, ring_max);
    const uint64_t bins = (static_cast<uint64_t>(distinct_block_tasks_) + 2) * kCutcpBinsInSlice;
    Status status = input_.Allocate(bins * atoms_per_bin_ * 4 * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, 0.0F, 1.0F);
    if (status.ok()) {
      status = AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kCutcpPoints, 1);
    }
    if (!status.ok()) return status;
    work_per_block_task_ = static_cast<double>(kCutcpBins) * atoms_per_bin_ * kCutcpPoints;
    // A term errs by 1e-6 of charge / sqrt(s): three rounded differences and their squares, the
    // reciprocal root, and 1 - s, which is rounded at 1. Of atoms in unit density those add up to
    // 1.6 (half a charge's mean, over the ball within the cutoff); 4 and three atoms at the
    // softening's limit, 32 * 0.5 each, are never exceeded. Additions round that by 2^-24, those of
    // the atoms inside: 4.2 a bin's on average, fewer than 12.
    const double largest_sum = 4.0 * atoms_per_bin_ + 48;
    tolerance_ = 1e-6 * largest_sum + 12.0 * atoms_per_bin_ * kRoundingUnit * largest_sum;
    reference_ns_ = kCutcpBins * atoms_per_bin_ * 20.0;
    SetParams(CutcpParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                          atoms_per_bin_});
    return {};
  }

 private:
  // The float32 sums of the kernel: both sides start from the same places.
  float AtomAt(uint64_t index, float offset) const {
    return Uniform(seed_, static_cast<uint32_t>(index), 0.0F, 1.0F) + offset;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint64_t slot = index / kCutcpPoints;
    const auto point = static_cast<uint32_t>(index % kCutcpPoints);
    const double x = CutcpPoint(point % kCutcpPointsAcross);
    const double y = CutcpPoint(point % kCutcpPointsInPlane / kCutcpPointsAcross);
    const double z = CutcpPoint(point / kCutcpPointsInPlane);
    for (uint32_t i = 0; i < kCutcpBins * atoms_per_bin_; ++i) {
      const CutcpBinOrigin origin = CutcpOriginOf(i / atoms_per_bin_);
      const uint64_t word = 4 * (slot * kCutcpBinsInSlice * atoms_per_bin_ + i);
      const double dx = x - AtomAt(word, origin.x);
      const double dy = y - AtomAt(word + 1, origin.y);
      const double dz = z - AtomAt(word + 2, origin.z);
      const double s = dx * dx + dy * dy + dz * dz + kCutcpSoftening;
      if (s >= 1) continue;
      expected[0] += AtomAt(word + 3, -0.5F) * (1 - s) * (1 - s) / std::sqrt(s);
    }
  }

  DeviceBuffer input_;
  uint32_t atoms_per_bin_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeCutcp = MakeAs<CutcpWorkload>;

}  // namespace gpushare::kernels
