// The workload of ffma.

#include <algorithm>
#include <cmath>
#include <memory>

#include "src/cuda/kernels/ffma.h"
#include "src/cuda/kernels/hash.h"
#include "src/cuda/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 65536;  // 128 MB of results
constexpr double kFfmaPerIteration = 2.0 * kFfmaPoints;
constexpr double kFfmaPerClock = 128;
constexpr float kAngle = 0.01F;
constexpr uint32_t kUnroll = 16;

class FfmaWorkload : public RecordWorkload {
 public:
  Status Make(const WorkloadOptions& options) {
    seed_ = options.seed;
    const double iterations_per_us =
        kReferenceClockMhz * kFfmaPerClock /
        (kFfmaPerIteration * kReferenceWorkersPerSm * kThreadsPerBlock);
    // A multiple of the unrolling: no remainder loop.
    const auto unrolled =
        static_cast<uint32_t>(std::lround(options.block_task_us * iterations_per_us / kUnroll));
    iterations_ = std::max(1U, unrolled) * kUnroll;
    grid_.x = CountBlockTasks(options, options.block_task_us);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    const Status status =
        AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kThreadsPerBlock, 2);
    if (!status.ok()) return status;
    work_per_block_task_ = iterations_ * kFfmaPerIteration * kThreadsPerBlock;
    // Coordinates stay below 2, so each of the two roundings of an iteration errs by 2^-24 at most,
    // and rotation does not multiply errors (by 1 + angle / 2 at most); four points are summed.
    tolerance_ = kFfmaPoints * 2 * 6e-8 * 1.01 * iterations_ + 2e-6;
    reference_ns_ = iterations_ * kFfmaPerIteration * 1.0;
    SetParams(FfmaParams{output_.as<float>(), distinct_block_tasks_, iterations_, seed_, kAngle});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint32_t thread = static_cast<uint32_t>(index);
    for (uint32_t point = 0; point < kFfmaPoints; ++point) {
      const uint32_t at = thread * 2 * kFfmaPoints + 2 * point;
      double x = Uniform(seed_, at, -1.0F, 1.0F);
      double y = Uniform(seed_, at + 1, -1.0F, 1.0F);
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

Status MakeFfma(const CatalogueKernel& /*kernel*/, const WorkloadOptions& options,
                std::unique_ptr<Workload>* workload) {
  auto made = std::make_unique<FfmaWorkload>();
  const Status status = made->Make(options);
  if (status.ok()) *workload = std::move(made);
  return status;
}

}  // namespace gpushare::kernels
