// The workload of transpose.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/transpose.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kBytesPerTile = 2.0 * sizeof(float) * kTransposeTile * kTransposeTile;
constexpr uint32_t kAcrossMax = 64;

class TransposeWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceDramBytesPerUs, kernel.workers_per_sm);
    const uint32_t tiles = WholeUnits(bytes, kBytesPerTile);
    const uint32_t ring = RingWithin(options, grid_.x, kInputBytesMax, kBytesPerTile / 2 * tiles);
    // Rows of strips are whole for any number of block tasks: their width divides it.
    uint32_t across = kAcrossMax;
    while (grid_.x % across != 0 || across > ring) across /= 2;
    distinct_block_tasks_ = ring / across * across;
    width_ = across * kTransposeTile;
    height_ = ring / across * tiles * kTransposeTile;
    const uint64_t floats = static_cast<uint64_t>(width_) * height_;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = kBytesPerTile * tiles;
    tolerance_ = 0;  // nothing is computed
    reference_ns_ = 20;
    SetParams(
        TransposeParams{input_.as<const float>(), output_.as<float>(), width_, height_, tiles});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint64_t x = index / height_;
    const uint64_t y = index % height_;
    expected[0] = Uniform(seed_, static_cast<uint32_t>(y * width_ + x), -1.0F, 1.0F);
  }

  DeviceBuffer input_;
  uint32_t width_ = 0;
  uint32_t height_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeTranspose = MakeAs<TransposeWorkload>;

}  // namespace gpushare::kernels
