#include "benchmarks/gpu/gemm_neighbour.h"

#include <algorithm>
#include <chrono>

#include "src/cuda/kernels/workload_base.h"

namespace gpushare::benchmarks {
namespace {

constexpr double kSoloMs = 20;  // far longer than what is checked beside it
constexpr auto kUntilPlaced = std::chrono::microseconds(100);

}  // namespace

kernels::Status GemmNeighbour::Init(const std::string& kernel) {
  kernel_ = kernels::FindKernel(kernel.c_str());
  if (kernel_ == nullptr) {
    return kernels::InvalidOption("The catalogue has no kernel '" + kernel +
                                  "' to run beside the GEMMs.");
  }
  kernels::Status status = launcher_.Init();
  kernels::WorkloadOptions options;
  options.solo_ms = kSoloMs;
  options.sms = launcher_.sms();
  if (status.ok()) status = kernels::MakeWorkload(*kernel_, options, &workload_);
  if (status.ok()) status = kernels::CudaStatus(kernel_->variants(&task_.variants), kernel_->name);
  if (!status.ok()) return status;
  task_.params = workload_->params();
  task_.grid = workload_->grid();
  return {};
}

kernels::Status GemmNeighbour::Begin(uint32_t workers_per_sm) {
  kernels::Status status = launcher_.BeginTask();
  if (!status.ok()) return status;
  header_ = launcher_.Header(task_);
  const uint32_t workers = std::min(workers_per_sm, task_.variants.workers_per_sm) *
                           static_cast<uint32_t>(launcher_.sms());
  status = launcher_.LaunchWorkers(task_, header_, workers);
  const auto placed = std::chrono::steady_clock::now() + kUntilPlaced;
  while (std::chrono::steady_clock::now() < placed) {
  }
  return status;
}

kernels::Status GemmNeighbour::End() {
  kernels::Status status = launcher_.Evict(header_.epoch, 0);
  return status.ok() ? launcher_.Wait() : status;
}

}  // namespace gpushare::benchmarks
