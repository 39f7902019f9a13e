#include "benchmarks/gpu/overlap/overlap_side.h"

#include <algorithm>
#include <cmath>

#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "kernels/tensor/gemm_problem.h"
#include "src/core/checks/claim_batch.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kSoloRepeats = 5;
constexpr int kWarmUps = 2;
// A task this near to the wanted duration is not made again.
constexpr double kNearEnough = 0.02;
constexpr int kSizings = 2;
// Columns of a product are a multiple of this, and at least one of it.
constexpr int kColumnsStep = 1024;

std::unique_ptr<kernels::DeviceBuffer> Matrix(int rows, int columns) {
  auto buffer = std::make_unique<kernels::DeviceBuffer>();
  Require(buffer->Allocate(static_cast<size_t>(rows) * static_cast<size_t>(columns) * 2));
  return buffer;
}

}  // namespace

Side::Side(OverlapGpu& gpu, const std::string& kernel, const ProductShape& shape, double solo_ms)
    : gpu_(gpu), kernel_(KernelNamed(kernel)) {
  for (kernels::FormLauncher& launcher : launchers_) Require(launcher.Init());
  task_.variants = VariantsOf(kernel_.name, kernel_.variants);
  if (shape.m > 0) {
    TakeProduct(shape.m, shape.n, shape.k);
  } else {
    TakeWorkload(solo_ms, 0);
  }
  for (int i = 0; i < kSizings && solo_ms > 0; ++i) {
    if (std::abs(original_ms_ / solo_ms - 1) < kNearEnough) break;
    Size(solo_ms);
  }
  Settle();
}

// As many columns or block tasks as take so long, by what the last ones took.
void Side::Size(double solo_ms) {
  const double factor = solo_ms / original_ms_;
  if (!is_product()) {
    return TakeWorkload(
        solo_ms, static_cast<uint32_t>(std::max(1.0, std::round(task_.block_tasks() * factor))));
  }
  const double steps = std::round(static_cast<double>(product_.n) * factor / kColumnsStep);
  const int columns = kColumnsStep * static_cast<int>(std::max(1.0, steps));
  if (columns == product_.n) return;
  TakeProduct(static_cast<int>(product_.m), columns, static_cast<int>(product_.k));
}

void Side::TakeWorkload(double solo_ms, uint32_t block_tasks) {
  kernels::WorkloadOptions options = {
      .solo_ms = solo_ms, .block_tasks = block_tasks, .sms = gpu_.sms()};
  workload_.reset();  // first: two of them may not fit
  Require(kernels::MakeWorkload(kernel_, options, &workload_));
  task_.params = workload_->params();
  task_.grid = workload_->grid();
  TimeAlone();
}

void Side::TakeProduct(int m, int n, int k) {
  for (auto* matrix : {&a_, &b_, &c_}) matrix->reset();
  a_ = Matrix(m, k);
  b_ = Matrix(n, k);
  c_ = Matrix(m, n);
  Require(kernels::FillPortableInputs(a_.get(), 1));
  Require(kernels::FillPortableInputs(b_.get(), 2));
  const kernels::GemmProblem problem = {m, n, k, a_->data(), b_->data(), c_->data()};
  Require(kernels::MakeGemmParams(kernel_.name, problem, &product_params_, &task_.grid));
  task_.params = product_params_.data();
  product_.m = m;
  product_.n = n;
  product_.k = k;
  product_.operands.a = a_->data();
  product_.operands.b = b_->data();
  product_.operands.d = c_->data();
  TimeAlone();
}

void Side::TimeAlone() {
  EventTimer timer;
  std::vector<double> times;
  for (int i = -kWarmUps; i < kSoloRepeats; ++i) {
    const double ms = TimeOriginal(timer, launchers_[kFirst], task_);
    if (i >= 0) times.push_back(ms);
  }
  original_ms_ = Median(std::move(times));
}

void Side::Settle() {
  const int64_t places = int64_t{workers_per_sm()} * gpu_.sms();
  const double rounds =
      std::max(1.0, static_cast<double>(task_.block_tasks()) / static_cast<double>(places));
  const uint32_t batch = core::PredictClaimBatch(original_ms_ * 1e6 / rounds);
  claim_batch_ = kernel_.yields ? 1 : core::ClaimBatchOfLaunch(batch, task_.block_tasks(), places);
  RunOriginal();
}

void Side::RunOriginal() {
  ClearOutput();
  Require(launcher().LaunchOriginal(task_));
  Require(launcher().Wait());
  checksum_ = Checksum();
}

uint64_t Side::Checksum() const {
  if (workload_ != nullptr) return ChecksumOf(*workload_);
  uint64_t checksum = 0;
  Require(c_->Checksum(&checksum));
  return checksum;
}

void Side::ClearOutput() {
  Require(workload_ != nullptr ? workload_->ClearOutput() : c_->FillPattern());
}

void Side::CheckBits(const std::string& when) const {
  if (Checksum() == checksum_) return;
  Fail("Kernel '" + std::string(kernel_.name) + "' gives other bits " + when +
       " than its original grid.");
}

BlockNeeds Side::Needs() const {
  return {task_.variants.threads_per_block, task_.variants.worker_registers,
          task_.variants.static_shared_bytes + task_.variants.dynamic_shared_bytes};
}

void Side::KeepShareOf(int32_t sms) {
  task_.grid = workload_->grid();
  task_.grid.x =
      std::max(1U, static_cast<uint32_t>(uint64_t{task_.grid.x} * static_cast<uint32_t>(sms) /
                                         static_cast<uint32_t>(gpu_.sms())));
  RunOriginal();
}

void Side::Verify(double seconds) { static_cast<void>(VerifiedChecksum(*workload_, seconds)); }

void Side::BeginTask() {
  for (kernels::FormLauncher& launcher : launchers_) Require(launcher.BeginTask());
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

void Side::EnqueueOriginal(CUstream stream) {
  launcher().UseStream(stream);
  Require(launcher().LaunchOriginal(task_));
}

void Side::EnqueueWorkers(const gpushare_worker_launch& header, uint32_t workers, CUstream stream) {
  launcher().UseStream(stream);
  Require(launcher().LaunchWorkers(task_, header, workers));
}

gpushare_worker_completion Side::Finish(const gpushare_worker_launch& header, Launcher launcher) {
  gpushare_worker_completion record = {};
  Require(launchers_[launcher].Finish(header, &record));
  return record;
}

void Side::CheckCount(uint64_t done, uint64_t of) const {
  if (done == of) return;
  Fail("Kernel '" + std::string(kernel_.name) + "' executed " + std::to_string(done) +
       " block tasks, and its task has " + std::to_string(of) + ".");
}

}  // namespace gpushare::benchmarks
