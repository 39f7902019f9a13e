// The workloads of sincos and sincos_steps.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "benchmarks/kernels/compute/sincos.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/warp.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 65536;        // 4 MB of results
constexpr uint32_t kYieldRing = 524288;  // 1 GB, of which a task takes what its block tasks need
constexpr double kResultsPerIteration = 2;
constexpr double kResultsPerClock = 16;
constexpr uint32_t kUnroll = 4;  // of the loop over the iterations

class SincosWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    const bool yields = kernel.yields;
    seed_ = options.seed;
    const double iterations_per_us =
        kReferenceClockMhz * kResultsPerClock /
        (kResultsPerIteration * kReferenceWorkersPerSm * kThreadsPerBlock);
    steps_ = 1;
    if (yields) {
      steps_ = options.steps > 0 ? options.steps
                                 : static_cast<uint32_t>(options.block_task_us / kSincosStepUs);
    }
    steps_ = std::max(1U, steps_);
    iterations_ =
        static_cast<uint32_t>(std::lround(options.block_task_us * iterations_per_us / steps_));
    iterations_ = std::max(1U, iterations_);
    if (iterations_ > kUnroll) iterations_ -= iterations_ % kUnroll;
    grid_.x = CountBlockTasks(options, options.block_task_us);
    distinct_block_tasks_ = RingOf(options, grid_.x, yields ? kYieldRing : kRing);
    if (yields && distinct_block_tasks_ < grid_.x) {
      return InvalidOption("sincos_steps has " + std::to_string(grid_.x) +
                           " block tasks, and at most " + std::to_string(distinct_block_tasks_) +
                           " have a place of their own to be saved in.");
    }
    threads_per_record_ = yields ? 1 : kWarpThreads;
    const Status status = AllocateOutput(
        static_cast<uint64_t>(distinct_block_tasks_) * kThreadsPerBlock / threads_per_record_, 2);
    if (!status.ok()) return status;
    const double terms = static_cast<double>(iterations_) * steps_;
    work_per_block_task_ = terms * kResultsPerIteration * kThreadsPerBlock;
    // A term errs by 7e-7 (2^-21.2 of the intrinsics on [-pi, pi], the rounded phase). The sums
    // stay below 3.3 (SincosPhaseStep), so an addition rounds by 2^-23 at most; those of a warp
    // below 106, five more roundings by 2^-18.
    tolerance_ = (terms * (7e-7 + 1.2e-7) + 1e-6) * threads_per_record_ + 2e-5;
    reference_ns_ = terms * 40 * threads_per_record_;
    SetParams(SincosParams{output_.as<float>(), distinct_block_tasks_, iterations_, steps_, seed_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto first = static_cast<uint32_t>(index) * threads_per_record_;
    for (uint32_t i = 0; i < threads_per_record_; ++i) AddThread(first + i, expected);
  }

  void AddThread(uint32_t thread, double expected[kRecordWordsMax]) const {
    constexpr double kHalfTurn = 1U << (kPhaseBits - 1);
    constexpr double kPi = 3.14159265358979323846;
    uint32_t phase = SincosFirstPhase(seed_, thread);
    const uint32_t phase_step = SincosPhaseStep(seed_, thread);
    const uint64_t terms = static_cast<uint64_t>(iterations_) * steps_;
    for (uint64_t i = 0; i < terms; ++i) {
      const double angle = ((phase & kPhaseMask) / kHalfTurn - 1) * kPi;
      expected[0] += std::cos(angle);
      expected[1] += std::sin(angle);
      phase += phase_step;
    }
  }

  uint32_t threads_per_record_ = 1;
  uint32_t iterations_ = 0;
  uint32_t steps_ = 1;
};

}  // namespace

extern const WorkloadMaker kMakeSincos = MakeAs<SincosWorkload>;

}  // namespace gpushare::kernels
