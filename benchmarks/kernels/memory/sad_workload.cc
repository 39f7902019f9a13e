// The workload of sad: frames of noise, with no two places alike.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/hashed_fill.h"
#include "benchmarks/kernels/memory/sad.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kAcross = 64;
constexpr double kTilesMax = 1 << 16;  // 64 MB of each frame
// Four differences of four pixels, 21 shifts for 16 places, a key and a minimum.
constexpr double kInstructionsPerPlace = 4 + 21.0 / 16 + 2;
constexpr double kInstructionsPerTile =
    kSadTileBlocks * kSadRange * kSadRange * kInstructionsPerPlace;
constexpr double kInstructionsPerClock = 64;
constexpr int kPixelsPerWord = 4;
constexpr int kFirstPlace = -16;

class SadWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double tiles_per_us =
        kReferenceClockMhz * kInstructionsPerClock / (kInstructionsPerTile * kernel.workers_per_sm);
    const uint32_t tiles = WholeUnits(options.block_task_us * tiles_per_us, 1);
    distinct_block_tasks_ = RingWithin(options, grid_.x, kTilesMax, tiles);
    const uint64_t all_tiles = static_cast<uint64_t>(distinct_block_tasks_) * tiles;
    const uint64_t rows = (all_tiles + kAcross - 1) / kAcross * kSadTileRows;
    pitch_ = kAcross * kSadTileWords;
    reference_pitch_ = pitch_ + 2 * kSadBorderWords;
    Status status = frame_.Allocate(rows * pitch_ * sizeof(uint32_t));
    if (status.ok()) status = FillHashed(frame_, seed_, 0xFFFFFFFFU);
    if (status.ok()) {
      status =
          reference_.Allocate((rows + 2 * kSadBorderRows) * reference_pitch_ * sizeof(uint32_t));
    }
    if (status.ok()) status = FillHashed(reference_, seed_ + 1, 0xFFFFFFFFU);
    if (status.ok()) status = AllocateOutput(all_tiles * kSadTileBlocks, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = kInstructionsPerTile * tiles;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = 120000;
    SetParams(SadParams{frame_.as<const uint32_t>(), reference_.as<const uint32_t>(),
                        output_.as<uint32_t>(), kAcross, tiles, distinct_block_tasks_});
    return {};
  }

 private:
  static int Pixel(uint32_t seed, int64_t pitch, int64_t x, int64_t y) {
    const auto word = static_cast<uint32_t>(y * pitch + x / kPixelsPerWord);
    return static_cast<int>((Hash(seed, word) >> (8 * (x % kPixelsPerWord))) & 0xFF);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    constexpr int64_t kSize = 4;
    const auto tile = static_cast<int64_t>(index / kSadTileBlocks);
    const auto block = static_cast<int64_t>(index % kSadTileBlocks);
    const int64_t left = (tile % kAcross * kSadTileWords + block % kSadTileWords) * kSize;
    const int64_t top = tile / kAcross * kSadTileRows + block / kSadTileWords * kSize;
    uint32_t best = 0xFFFFFFFFU;
    for (int64_t y = 0; y < kSadRange; ++y) {
      for (int64_t x = 0; x < kSadRange; ++x) {
        uint32_t sum = 0;
        for (int64_t pixel = 0; pixel < kSize * kSize; ++pixel) {
          const int64_t px = left + pixel % kSize;
          const int64_t py = top + pixel / kSize;
          // The reference frame's border puts its pixel (0, 0) at (16, 16).
          const int64_t rx = px + x + kFirstPlace + kSadBorderWords * kPixelsPerWord;
          const int64_t ry = py + y + kFirstPlace + kSadBorderRows;
          sum += static_cast<uint32_t>(
              std::abs(Pixel(seed_, pitch_, px, py) - Pixel(seed_ + 1, reference_pitch_, rx, ry)));
        }
        best = std::min(best, (sum << 16) | static_cast<uint32_t>(y * kSadRange + x));
      }
    }
    expected[0] = best;
  }

  DeviceBuffer frame_;
  DeviceBuffer reference_;
  uint32_t pitch_ = 0;
  uint32_t reference_pitch_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeSad = MakeAs<SadWorkload>;

}  // namespace gpushare::kernels
