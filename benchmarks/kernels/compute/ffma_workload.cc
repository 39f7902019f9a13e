// The workload of ffma.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/ffma.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/warp.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 65536;  // 4 MB of results
constexpr double kFfmaPerIteration = 2.0 * kFfmaPoints;
constexpr double kFfmaPerClock = 128;
constexpr float kAngle = 0.01F;

class FfmaWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& /*kernel*/, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double iterations_per_us =
        kReferenceClockMhz * kFfmaPerClock /
        (kFfmaPerIteration * kReferenceWorkersPerSm * kThreadsPerBlock);
    const auto unrolled =
        static_cast<uint32_t>(std::lround(options.block_task_us * iterations_per_us / kFfmaUnroll));
    iterations_ = std::max(1U, unrolled) * kFfmaUnroll;
    grid_.x = CountBlockTasks(options, options.block_task_us);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    const Status status = AllocateOutput(
        static_cast<uint64_t>(distinct_block_tasks_) * kThreadsPerBlock / kWarpThreads, 2);
    if (!status.ok()) return status;
    work_per_block_task_ = iterations_ * kFfmaPerIteration * kThreadsPerBlock;
    // Coordinates stay below 2, so each of the two roundings of an iteration errs by 2^-24 at most,
    // and rotation does not multiply errors (by 1 + angle / 2 at most); a warp's points are summed,
    // to less than 256, in seven roundings by 2^-17.
    tolerance_ = (kFfmaPoints * 2 * 6e-8 * 1.01 * iterations_) * kWarpThreads + 6e-5;
    reference_ns_ = iterations_ * kFfmaPerIteration * kWarpThreads;
    SetParams(FfmaParams{output_.as<float>(), distinct_block_tasks_, iterations_, seed_, kAngle});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto first = static_cast<uint32_t>(index) * kWarpThreads * kFfmaPoints;
    for (uint32_t point = 0; point < kWarpThreads * kFfmaPoints; ++point) {
      const FfmaPoint start = FfmaStart(seed_, first + point);
      double x = start.x;
      double y = start.y;
      for (uint32_t i = 0; i < iterations_; ++i) {
        x -= static_cast<double>(kAngle) * y;
        y += static_cast<double>(kAngle) * x;
      }
      expected[0] += x;
      expected[1] += y;
    }
  }

  uint32_t iterations_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeFfma = MakeAs<FfmaWorkload>;

}  // namespace gpushare::kernels
