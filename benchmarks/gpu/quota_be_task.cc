// See quota_be_task.h.

#include "benchmarks/gpu/quota_be_task.h"

#include <algorithm>

#include "benchmarks/gpu/quota.h"

namespace gpushare::quota {
namespace {

constexpr double kVerifySeconds = 0.2;

}  // namespace

BeTask::BeTask(Gpu& gpu, const char* name, double solo_ms, uint32_t seed, uint32_t id)
    : gpu_(gpu), name_(name), kernel_(gpu, name, kernels::FindKernel(name)->variants, id) {
  kernels::WorkloadOptions options;
  options.solo_ms = solo_ms;
  options.sms = gpu.sms();
  options.seed = seed;
  Require(MakeWorkload(*kernels::FindKernel(name), options, &workload_));
  kernel_.SetTask(workload_->params(), workload_->params_bytes(), workload_->grid());
  ClearOutput();
  static_cast<void>(SoloMs());
  expected_ = Checksum();
  kernels::Verification verification;
  Require(workload_->Verify(kVerifySeconds, &verification));
  if (verification.wrong > 0 || verification.checked == 0) {
    Fail(name_ + " is wrong: " + verification.first_wrong);
  }
}

void BeTask::KeepShareOf(int sms) {
  kernels::Grid grid = workload_->grid();
  grid.x = std::max(1U, static_cast<uint32_t>(uint64_t{grid.x} * static_cast<uint32_t>(sms) /
                                              static_cast<uint32_t>(gpu_.sms())));
  kernel_.SetTask(workload_->params(), workload_->params_bytes(), grid);
  ClearOutput();
  static_cast<void>(SoloMs());
  expected_ = Checksum();
}

void BeTask::ClearOutput() { Require(workload_->ClearOutput()); }

void BeTask::CheckOutput(const char* way, int quota) {
  if (Checksum() == expected_) return;
  Fail(name_ + " has another answer under " + way + " of " + std::to_string(quota) +
       " SMs than on the whole GPU");
}

uint64_t BeTask::Checksum() {
  uint64_t checksum = 0;
  Require(workload_->Checksum(&checksum));
  return checksum;
}

}  // namespace gpushare::quota
