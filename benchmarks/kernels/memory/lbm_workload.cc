// The workload of lbm.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/lbm.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kBytesPerRow = 2.0 * sizeof(float) * kLbmDirections * kLbmWidth;
constexpr uint32_t kHeightMax = 256;
// Populations: no equilibrium, so that the collision does something; densities of 0.6 to 1.4.
constexpr float kLow = 0.03F;
constexpr float kHigh = 0.07F;

class LbmWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceDramBytesPerUs, kernel.workers_per_sm);
    const uint32_t rows = WholeUnits(bytes, kBytesPerRow);
    distinct_block_tasks_ = RingWithin(options, grid_.x, kInputBytesMax, kBytesPerRow / 2 * rows);
    const uint32_t all_rows = distinct_block_tasks_ * rows;
    height_ = kHeightMax;
    while (all_rows % height_ != 0) height_ /= 2;
    depth_ = all_rows / height_;
    const uint64_t floats = static_cast<uint64_t>(kLbmDirections) * kLbmWidth * all_rows;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, kLow, kHigh);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    work_per_block_task_ = kBytesPerRow * rows;
    // The density errs by 19 roundings of sums below 1.4, 1.2e-6, of which a direction has a third
    // or less; the velocity (below 0.4, by a quotient that errs by 2 units) by 1.5e-6, of which a
    // moving direction has 3 * 1.4 / 18; the relaxation multiplies that by 1.2.
    tolerance_ = 3e-6;
    reference_ns_ = 1000;
    SetParams(LbmParams{input_.as<const float>(), output_.as<float>(), height_, depth_, rows,
                        distinct_block_tasks_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint64_t cells = static_cast<uint64_t>(kLbmWidth) * height_ * depth_;
    const auto direction = static_cast<uint32_t>(index / cells);
    const int64_t cell = static_cast<int64_t>(index % cells);
    const int64_t x = cell % kLbmWidth;
    const int64_t y = cell / kLbmWidth % height_;
    const int64_t z = cell / kLbmWidth / height_;
    double arrived = 0;
    double density = 0;
    double momentum[3] = {};
    for (uint32_t d = 0; d < kLbmDirections; ++d) {
      const int64_t from_x = (x - LbmX(d) + kLbmWidth) % kLbmWidth;
      const int64_t from_y = (y - LbmY(d) + height_) % height_;
      const int64_t from_z = (z - LbmZ(d) + depth_) % depth_;
      const int64_t from = (from_z * height_ + from_y) * kLbmWidth + from_x;
      const double f = Uniform(
          seed_, static_cast<uint32_t>(d * cells + static_cast<uint64_t>(from)), kLow, kHigh);
      if (d == direction) arrived = f;
      density += f;
      momentum[0] += LbmX(d) * f;
      momentum[1] += LbmY(d) * f;
      momentum[2] += LbmZ(d) * f;
    }
    const double u[3] = {momentum[0] / density, momentum[1] / density, momentum[2] / density};
    const double along = LbmX(direction) * u[0] + LbmY(direction) * u[1] + LbmZ(direction) * u[2];
    const double squares = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    const double weight = direction == 0 ? 1.0 / 3 : direction < 7 ? 1.0 / 18 : 1.0 / 36;
    const double wanted = weight * density * (1 + 3 * along + 4.5 * along * along - 1.5 * squares);
    expected[0] = arrived + static_cast<double>(kLbmOmega) * (wanted - arrived);
  }

  DeviceBuffer input_;
  uint32_t height_ = 1;
  uint32_t depth_ = 1;
};

}  // namespace

extern const WorkloadMaker kMakeLbm = MakeAs<LbmWorkload>;

}  // namespace gpushare::kernels
