// The workload of sgemm: a product whose depth follows the wanted length of a block task.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/sgemm.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 2560;  // tiles: 168 MB of C
constexpr uint32_t kTilesAcross = 8;
constexpr uint32_t kSeedOfB = 0x510E527FU;
constexpr double kTileElements = static_cast<double>(kSgemmTile) * kSgemmTile;
constexpr double kFactorBytesMax = 1 << 30;

class SgemmWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double multiplies =
        PerThread(options.block_task_us, kFfmaPerClock, kernel.workers_per_sm);
    k_ = WholeSteps(multiplies * kThreadsPerBlock / kTileElements, kSgemmDepth);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    // Rows are whole for any number of block tasks: a number that the usual width does not divide
    // gets narrower rows.
    const uint32_t across = grid_.x % kTilesAcross == 0 ? kTilesAcross : 1;
    const double row_bytes = 1.0 * kSgemmTile * k_ * sizeof(float);
    const uint32_t rows_max = static_cast<uint32_t>(
        std::clamp(kFactorBytesMax / row_bytes, 1.0, static_cast<double>(kRing) / across));
    const uint32_t rows = std::max(1U, RingOf(options, grid_.x, rows_max * across) / across);
    distinct_block_tasks_ = rows * across;
    m_ = rows * kSgemmTile;
    n_ = across * kSgemmTile;
    Status status = a_.Allocate(static_cast<uint64_t>(m_) * k_ * sizeof(float));
    if (status.ok()) status = b_.Allocate(static_cast<uint64_t>(n_) * k_ * sizeof(float));
    if (status.ok()) status = a_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = b_.FillUniform(seed_ ^ kSeedOfB, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(static_cast<uint64_t>(m_) * n_, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = kTileElements * k_;
    // Products have variance 1/9: partial sums stay below eight deviations, and each of the k
    // roundings errs by 2^-24 of that.
    const double depth = k_;
    tolerance_ = depth * kRoundingUnit * (8.0 / 3 * std::sqrt(depth) + 1);
    reference_ns_ = k_ * 8.0;
    SetParams(SgemmParams{a_.as<const float>(), b_.as<const float>(), output_.as<float>(), m_, n_,
                          k_, distinct_block_tasks_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto row = static_cast<uint32_t>(index / n_);
    const auto column = static_cast<uint32_t>(index % n_);
    for (uint32_t k = 0; k < k_; ++k) {
      expected[0] += static_cast<double>(Uniform(seed_, k * m_ + row, -1.0F, 1.0F)) *
                     Uniform(seed_ ^ kSeedOfB, k * n_ + column, -1.0F, 1.0F);
    }
  }

  DeviceBuffer a_;
  DeviceBuffer b_;
  uint32_t m_ = 0;
  uint32_t n_ = 0;
  uint32_t k_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeSgemm = MakeAs<SgemmWorkload>;

}  // namespace gpushare::kernels
