// The workload of hotspot: a chip that is far larger than L2.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/hotspot.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kTilesAcross = 8;
constexpr double kInputBytesMax = 1 << 30;
constexpr double kBytesPerRow = 3.0 * sizeof(float) * kHotspotTileWidth;
constexpr float kTemperatureLow = 20.0F;
constexpr float kTemperatureHigh = 90.0F;
constexpr float kPowerHigh = 4.0F;
constexpr float kAmbient = 25.0F;
constexpr float kStepPower = 0.5F;
constexpr float kStepX = 0.1F;
constexpr float kStepY = 0.08F;
constexpr float kStepZ = 0.02F;

class HotspotWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceDramBytesPerUs, kernel.workers_per_sm);
    const uint32_t rows = WholeUnits(bytes, kBytesPerRow);
    const uint32_t ring = RingWithin(options, grid_.x, kInputBytesMax, kBytesPerRow * 2 / 3 * rows);
    // Rows are whole for any number of block tasks: a number that the usual width does not divide
    // gets narrower rows.
    const uint32_t across = grid_.x % kTilesAcross == 0 && ring >= kTilesAcross ? kTilesAcross : 1;
    distinct_block_tasks_ = ring / across * across;
    width_ = across * kHotspotTileWidth;
    height_ = ring / across * rows;
    const uint64_t floats = static_cast<uint64_t>(width_) * height_;
    Status status = temperature_.Allocate(floats * sizeof(float));
    if (status.ok()) status = temperature_.FillUniform(seed_, kTemperatureLow, kTemperatureHigh);
    if (status.ok()) status = power_.Allocate(floats * sizeof(float));
    if (status.ok()) status = power_.FillUniform(seed_ + 1, 0.0F, kPowerHigh);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = kBytesPerRow * rows;
    // The result's rounding 3.8e-6 (below 128), four of sums below 180 (7.6e-6 each) times the
    // steps, three of changes below 30 (1e-6 each).
    tolerance_ = 2e-5;
    reference_ns_ = 70;
    SetParams(HotspotParams{temperature_.as<const float>(), power_.as<const float>(),
                            output_.as<float>(), width_, height_, rows, kAmbient, kStepPower,
                            kStepX, kStepY, kStepZ});
    return {};
  }

 private:
  double At(int64_t x, int64_t y) const {
    x = std::clamp<int64_t>(x, 0, width_ - 1);
    y = std::clamp<int64_t>(y, 0, height_ - 1);
    return Uniform(seed_, static_cast<uint32_t>(y * width_ + x), kTemperatureLow, kTemperatureHigh);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto x = static_cast<int64_t>(index % width_);
    const auto y = static_cast<int64_t>(index / width_);
    const double t = At(x, y);
    const double power = Uniform(seed_ + 1, static_cast<uint32_t>(index), 0.0F, kPowerHigh);
    const double across = At(x - 1, y) + At(x + 1, y) - 2 * t;
    const double along = At(x, y - 1) + At(x, y + 1) - 2 * t;
    expected[0] = t + static_cast<double>(kStepPower) * power +
                  static_cast<double>(kStepX) * across + static_cast<double>(kStepY) * along +
                  static_cast<double>(kStepZ) * (static_cast<double>(kAmbient) - t);
  }

  DeviceBuffer temperature_;
  DeviceBuffer power_;
  uint32_t width_ = 0;
  uint32_t height_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeHotspot = MakeAs<HotspotWorkload>;

}  // namespace gpushare::kernels
