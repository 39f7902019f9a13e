// See overlap_side.h.

#include "benchmarks/gpu/overlap_side.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "kernels/tensor/gemm_problem.h"
#include "src/core/seams/claim_batch.h"

namespace gpushare::benchmarks {
namespace {

using kernels::Status;

constexpr int kSoloRepeats = 5;
constexpr int kWarmUps = 2;
// A task this near to the wanted duration is not made again.
constexpr double kNearEnough = 0.02;
constexpr int kSizings = 2;
// Columns of a product are a multiple of this, and at least one of it.
constexpr int kColumnsStep = 1024;

double Wanted(double size, double solo_ms, double original_ms) {
  return size * solo_ms / original_ms;
}

}  // namespace

Status Side::Describe(const kernels::CatalogueKernel& kernel) {
  kernel_ = &kernel;
  for (kernels::FormLauncher& launcher : launchers_) {
    if (initialised_) break;
    const Status status = launcher.Init();
    if (!status.ok()) return status;
  }
  initialised_ = true;
  return kernels::CudaStatus(kernel.variants(&task_.variants), kernel.name);
}

Status Side::TakeWorkload(const kernels::WorkloadOptions& options) {
  workload_.reset();  // first: two of them may not fit
  Status status = kernels::MakeWorkload(*kernel_, options, &workload_);
  if (!status.ok()) return status;
  task_.params = workload_->params();
  task_.grid = workload_->grid();
  return TimeAlone();
}

Status Side::Make(const kernels::CatalogueKernel& kernel, double solo_ms) {
  Status status = Describe(kernel);
  kernels::WorkloadOptions options;
  options.solo_ms = solo_ms;
  options.sms = gpu_.sms();
  if (status.ok()) status = TakeWorkload(options);
  for (int i = 0; i < kSizings && status.ok(); ++i) {
    if (std::abs(original_ms_ / solo_ms - 1) < kNearEnough) break;
    const double tasks = Wanted(task_.block_tasks(), solo_ms, original_ms_);
    options.block_tasks = static_cast<uint32_t>(std::max(1.0, std::round(tasks)));
    status = TakeWorkload(options);
  }
  return status.ok() ? Settle() : status;
}

Status Side::TakeProduct(int m, int n, int k) {
  const auto bytes = [](int rows, int columns) {
    return static_cast<size_t>(rows) * static_cast<size_t>(columns) * 2;
  };
  a_.reset();
  b_.reset();
  c_.reset();
  a_ = std::make_unique<kernels::DeviceBuffer>();
  b_ = std::make_unique<kernels::DeviceBuffer>();
  c_ = std::make_unique<kernels::DeviceBuffer>();
  Status status = a_->Allocate(bytes(m, k));
  if (status.ok()) status = b_->Allocate(bytes(n, k));
  if (status.ok()) status = c_->Allocate(bytes(m, n));
  if (status.ok()) status = kernels::FillPortableInputs(a_.get(), 1);
  if (status.ok()) status = kernels::FillPortableInputs(b_.get(), 2);
  if (!status.ok()) return status;
  kernels::GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a = a_->data();
  problem.b = b_->data();
  problem.c = c_->data();
  status = kernels::MakeGemmParams(kernel_->name, problem, &product_params_, &task_.grid);
  if (!status.ok()) return status;
  task_.params = product_params_.data();
  product_.m = m;
  product_.n = n;
  product_.k = k;
  product_.arguments.a = a_->data();
  product_.arguments.b = b_->data();
  product_.arguments.d = c_->data();
  return TimeAlone();
}

Status Side::MakeProduct(const kernels::CatalogueKernel& kernel, int m, int n, int k,
                         double solo_ms) {
  Status status = Describe(kernel);
  if (status.ok()) status = TakeProduct(m, n, k);
  for (int i = 0; i < kSizings && status.ok() && solo_ms > 0; ++i) {
    if (std::abs(original_ms_ / solo_ms - 1) < kNearEnough) break;
    const double columns =
        std::round(Wanted(static_cast<double>(product_.n), solo_ms, original_ms_) / kColumnsStep);
    const int wanted = kColumnsStep * static_cast<int>(std::max(1.0, columns));
    if (wanted == product_.n) break;
    status = TakeProduct(m, wanted, k);
  }
  return status.ok() ? Settle() : status;
}

Status Side::TimeAlone() {
  kernels::EventTimer timer;
  std::vector<double> times;
  for (int i = -kWarmUps; i < kSoloRepeats; ++i) {
    double ms = 0;
    const Status status = kernels::TimeOriginal(&launchers_[kFirst], task_, &timer, &ms);
    if (!status.ok()) return status;
    if (i >= 0) times.push_back(ms);
  }
  original_ms_ = kernels::Median(std::move(times));
  return {};
}

Status Side::Settle() {
  const double rounds = std::max(1.0, static_cast<double>(task_.block_tasks()) /
                                          (static_cast<double>(workers_per_sm()) * gpu_.sms()));
  const uint32_t batch = core::PredictClaimBatch(original_ms_ * 1e6 / rounds);
  claim_batch_ = kernel_->yields ? 1
                                 : core::ClaimBatchOfLaunch(batch, task_.block_tasks(),
                                                            int64_t{workers_per_sm()} * gpu_.sms());
  Status status = ClearOutput();
  if (status.ok()) status = launchers_[kFirst].LaunchOriginal(task_);
  if (status.ok()) status = launchers_[kFirst].Wait();
  return status.ok() ? Checksum(&checksum_) : status;
}

Status Side::Checksum(uint64_t* checksum) const {
  return workload_ != nullptr ? workload_->Checksum(checksum) : c_->Checksum(checksum);
}

Status Side::ClearOutput() {
  return workload_ != nullptr ? workload_->ClearOutput() : c_->FillPattern();
}

Status Side::IsRight(bool* right) {
  uint64_t checksum = 0;
  const Status status = Checksum(&checksum);
  *right = checksum == checksum_;
  return status;
}

BlockNeeds Side::Needs() const {
  return {task_.variants.threads_per_block, task_.variants.worker_registers,
          task_.variants.static_shared_bytes + task_.variants.dynamic_shared_bytes};
}

Status Side::BeginTask() {
  for (kernels::FormLauncher& launcher : launchers_) {
    const Status status = launcher.BeginTask();
    if (!status.ok()) return status;
  }
  return {};
}

gpushare_worker_launch Side::Header(Launcher launcher) {
  gpushare_worker_launch header = launchers_[launcher].Header(task_);
  header.claim_batch = claim_batch_;
  return header;
}

gpushare_worker_launch Side::TopUp(const gpushare_worker_launch& header) {
  gpushare_worker_launch more = Header(kSecond);
  more.counter = header.counter;
  more.yield_list = header.yield_list;
  more.yield_capacity = header.yield_capacity;
  return more;
}

Status Side::EnqueueOriginal(CUstream stream) const {
  void* arguments[] = {const_cast<void*>(task_.params)};
  return gpu_.Launch(
      task_.variants.original_function,
      {task_.grid, task_.variants.threads_per_block, task_.variants.dynamic_shared_bytes},
      arguments, stream);
}

Status Side::EnqueueWorkers(const gpushare_worker_launch& header, uint32_t workers,
                            CUstream stream) const {
  void* arguments[] = {const_cast<gpushare_worker_launch*>(&header),
                       const_cast<void*>(task_.params)};
  return gpu_.Launch(
      task_.variants.worker_function,
      {{workers, 1, 1}, task_.variants.threads_per_block, task_.variants.dynamic_shared_bytes},
      arguments, stream);
}

Status Side::Evict(Launcher launcher, const gpushare_worker_launch& header) {
  return launchers_[launcher].Evict(header.epoch, 0);
}

Status Side::Finish(Launcher launcher, const gpushare_worker_launch& header,
                    gpushare_worker_completion* record) {
  return launchers_[launcher].Finish(header, record);
}

}  // namespace gpushare::benchmarks
