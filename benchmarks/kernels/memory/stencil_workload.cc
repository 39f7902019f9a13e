// The workload of stencil: a field that is far larger than L2, swept again and again by tiles.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/stencil.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kTilesAcross = 8;
constexpr double kInputBytesMax = 1 << 30;

class StencilWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& /*kernel*/, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_row = 2.0 * sizeof(float) * kStencilTileWidth;
    const double bytes_per_block_task =
        kReferenceDramBytesPerUs * options.block_task_us / (options.sms * kReferenceWorkersPerSm);
    const uint32_t rows =
        std::max(1U, static_cast<uint32_t>(std::lround(bytes_per_block_task / bytes_per_row)));
    const uint32_t block_tasks = CountBlockTasks(options, options.block_task_us);
    // Rows are whole for any number of block tasks: a number that the usual width does not divide
    // gets narrower rows.
    const uint32_t across = block_tasks % kTilesAcross == 0 ? kTilesAcross : 1;
    grid_ = GridOf(block_tasks, across);
    const double tile_bytes = bytes_per_row / 2 * rows;
    const auto tiles_max = static_cast<uint32_t>(kInputBytesMax / tile_bytes);
    const uint32_t tile_rows = std::max(1U, RingOf(options, block_tasks, tiles_max) / across);
    distinct_block_tasks_ = tile_rows * across;
    width_ = across * kStencilTileWidth;
    height_ = tile_rows * rows;
    const uint64_t floats = static_cast<uint64_t>(width_) * height_;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = bytes_per_row * rows;
    tolerance_ = 1e-6;  // six roundings of values below 4, most of them scaled by an eighth
    reference_ns_ = 60;
    SetParams(StencilParams{input_.as<const float>(), output_.as<float>(), width_, height_, rows});
    return {};
  }

 private:
  double At(int64_t x, int64_t y) const {
    if (x < 0 || y < 0 || x >= width_ || y >= height_) return 0;
    return Uniform(seed_, static_cast<uint32_t>(y * width_ + x), -1.0F, 1.0F);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto x = static_cast<int64_t>(index % width_);
    const auto y = static_cast<int64_t>(index / width_);
    const double sides = At(x - 1, y) + At(x + 1, y) + At(x, y - 1) + At(x, y + 1);
    expected[0] =
        static_cast<double>(kStencilCentre) * At(x, y) + static_cast<double>(kStencilSide) * sides;
  }

  DeviceBuffer input_;
  uint32_t width_ = 0;
  uint32_t height_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeStencil = MakeAs<StencilWorkload>;

}  // namespace gpushare::kernels
