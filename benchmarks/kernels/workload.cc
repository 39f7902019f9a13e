#include "benchmarks/kernels/workload.h"

#include <algorithm>
#include <cmath>

namespace gpushare::kernels {
namespace {

double PerClockAndSm(Bound bound) {
  switch (bound) {
    case Bound::kSpecial:
      return 16;
    case Bound::kFfma:
      return 128;
    case Bound::kInteger:
      return 64;
    case Bound::kShared:
      return 128;
    case Bound::kTensor:
      return 2048;
    case Bound::kL2:
    case Bound::kDram:
    case Bound::kLatency:
      break;
  }
  return 0;
}

}  // namespace

double Workload::BoundSeconds(int32_t sms, double clock_mhz, double dram_bytes_per_s) const {
  const double work = work_per_block_task_ * block_tasks();
  if (kernel_->bound == Bound::kDram) return work / dram_bytes_per_s;
  if (kernel_->bound == Bound::kL2) return work / (kReferenceL2BytesPerUs * 1e6);
  if (kernel_->bound == Bound::kLatency) {
    return work * 1e-9 / (static_cast<double>(sms) * kernel_->workers_per_sm);
  }
  return work / (PerClockAndSm(kernel_->bound) * sms * clock_mhz * 1e6);
}

Status Workload::VerifyOutput(double budget_s) {
  Verification verification;
  const Status status = Verify(budget_s, &verification);
  if (!status.ok() || (verification.wrong == 0 && verification.checked > 0)) return status;
  return {-1, "The kernel '" + std::string(kernel_->name) + "' has " +
                  std::to_string(verification.wrong) + " wrong of " +
                  std::to_string(verification.checked) +
                  " checked results: " + verification.first_wrong};
}

uint32_t CountBlockTasks(const WorkloadOptions& options, double block_task_us,
                         uint32_t workers_per_sm) {
  if (options.block_tasks > 0) return options.block_tasks;
  const double workers = static_cast<double>(options.sms) * workers_per_sm;
  const double waves = std::max(1.0, std::round(options.solo_ms * 1000 / block_task_us));
  const double block_tasks = waves * workers;
  // The claim counter is 32 bits wide, and workers claim past the end.
  constexpr double kBlockTasksMax = 1U << 31;
  return block_tasks < kBlockTasksMax ? static_cast<uint32_t>(block_tasks) : 0;
}

Status MakeWorkload(const CatalogueKernel& kernel, const WorkloadOptions& options,
                    std::unique_ptr<Workload>* workload) {
  if (options.sms <= 0 || options.solo_ms <= 0 || options.block_task_us < 0) {
    return InvalidOption("A workload asks for " + std::to_string(options.solo_ms) + " ms on " +
                         std::to_string(options.sms) + " SMs, and both must be positive.");
  }
  WorkloadOptions filled = options;
  if (filled.block_task_us == 0) filled.block_task_us = kernel.block_task_us;
  if (CountBlockTasks(filled, filled.block_task_us, kernel.workers_per_sm) == 0) {
    return InvalidOption("A workload asks for " + std::to_string(options.solo_ms) +
                         " ms, and that is more than 2^31 block tasks.");
  }
  const Status status = kernel.make(kernel, filled, workload);
  if (status.ok()) (*workload)->kernel_ = &kernel;
  return status;
}

}  // namespace gpushare::kernels
