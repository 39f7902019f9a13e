// The workload of pathfinder.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/hashed_fill.h"
#include "benchmarks/kernels/memory/pathfinder.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kBytesPerTileRow = sizeof(uint32_t) * kPathfinderColumns;

class PathfinderWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceDramBytesPerUs, kernel.workers_per_sm);
    // A whole pyramid, or a lower one (of an even number of rows) for a short block task.
    rows_ = std::clamp(WholeUnits(bytes, 2 * kBytesPerTileRow) * 2, 2U, kPathfinderHalo);
    const double tile_bytes = kBytesPerTileRow * (rows_ + 2);  // the walls, the row above, the last
    const uint32_t tiles = WholeUnits(bytes, tile_bytes);
    distinct_block_tasks_ =
        RingWithin(options, grid_.x, kInputBytesMax, kBytesPerTileRow * rows_ * tiles);
    columns_ = distinct_block_tasks_ * tiles * kPathfinderColumns;
    const uint64_t row_bytes = static_cast<uint64_t>(columns_) * sizeof(uint32_t);
    Status status = source_.Allocate(row_bytes);
    if (status.ok()) status = FillHashed(source_, seed_, kPathfinderSourceMask);
    if (status.ok()) status = walls_.Allocate(row_bytes * rows_);
    if (status.ok()) status = FillHashed(walls_, seed_ + 1, kPathfinderWallMask);
    if (status.ok()) status = AllocateOutput(columns_, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = tile_bytes * tiles;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = 8.0 * rows_ * (rows_ + 2);
    SetParams(PathfinderParams{source_.as<const uint32_t>(), walls_.as<const uint32_t>(),
                               output_.as<uint32_t>(), columns_, rows_, tiles,
                               distinct_block_tasks_});
    return {};
  }

 private:
  bool IsInside(int64_t column) const { return column >= 0 && column < columns_; }

  // All ways that end in the column: a triangle of cells, from the row above the pyramid.
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    constexpr uint32_t kNever = 1U << 30;
    constexpr uint32_t kSpan = 2 * kPathfinderHalo + 1;
    std::array<uint32_t, kSpan> cost = {};
    const int64_t left = static_cast<int64_t>(index) - rows_;
    const uint32_t span = 2 * rows_ + 1;
    for (uint32_t i = 0; i < span; ++i) {
      const int64_t x = left + i;
      cost[i] =
          IsInside(x) ? Hash(seed_, static_cast<uint32_t>(x)) & kPathfinderSourceMask : kNever;
    }
    for (uint32_t row = 0; row < rows_; ++row) {
      std::array<uint32_t, kSpan> next = {};
      for (uint32_t i = row + 1; i + row + 1 < span; ++i) {
        const int64_t x = left + i;
        next[i] = kNever;
        if (!IsInside(x)) continue;
        const auto at = static_cast<uint32_t>(static_cast<int64_t>(row) * columns_ + x);
        const uint32_t wall = Hash(seed_ + 1, at) & kPathfinderWallMask;
        next[i] = wall + std::min({cost[i - 1], cost[i], cost[i + 1]});
      }
      cost = next;
    }
    expected[0] = cost[rows_];
  }

  DeviceBuffer source_;
  DeviceBuffer walls_;
  uint32_t columns_ = 0;
  uint32_t rows_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakePathfinder = MakeAs<PathfinderWorkload>;

}  // namespace gpushare::kernels
