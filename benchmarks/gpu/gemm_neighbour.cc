#include "benchmarks/gpu/gemm_neighbour.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>

#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kSoloMs = 20;  // far longer than what is checked beside it
constexpr auto kUntilPlaced = std::chrono::microseconds(100);

}  // namespace

Status GemmNeighbour::Init(const std::string& kernel) {
  kernel_ = FindKernel(kernel.c_str());
  if (kernel_ == nullptr) {
    return InvalidOption("The catalogue has no kernel '" + kernel + "' to run beside the GEMMs.");
  }
  Status status = launcher_.Init();
  WorkloadOptions options;
  options.solo_ms = kSoloMs;
  options.sms = launcher_.sms();
  if (status.ok()) status = MakeWorkload(*kernel_, options, &workload_);
  if (status.ok()) status = CudaStatus(kernel_->variants(&task_.variants), kernel_->name);
  if (!status.ok()) return status;
  task_.params = workload_->params();
  task_.grid = workload_->grid();
  // An SM changes its split between L1 and shared memory only when it is empty: beside workers that
  // keep a large L1 no block of a GEMM would fit.
  return CudaStatus(cudaFuncSetAttribute(task_.variants.worker_symbol,
                                         cudaFuncAttributePreferredSharedMemoryCarveout,
                                         cudaSharedmemCarveoutMaxShared),
                    "cudaFuncSetAttribute");
}

Status GemmNeighbour::Begin(uint32_t workers_per_sm) {
  Status status = launcher_.BeginTask();
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

Status GemmNeighbour::End(bool* was_running) {
  Status status = launcher_.Evict(header_.epoch, 0);
  gpushare_worker_completion record = {};
  if (status.ok()) status = launcher_.Finish(header_, &record);
  *was_running = record.block_tasks_left > 0;
  return status;
}

}  // namespace gpushare::kernels
