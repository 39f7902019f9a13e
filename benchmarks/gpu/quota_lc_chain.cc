// See quota_lc_chain.h.

#include "benchmarks/gpu/quota_lc_chain.h"

#include <cuda_runtime_api.h>

#include <atomic>

#include "benchmarks/gpu/quota.h"
#include "benchmarks/gpu/quota_kernels.h"

namespace gpushare::quota {
namespace {

constexpr size_t kKernels = 4;
// The shortest that streaming has; whole waves of it make a kernel of about 15 us.
constexpr double kBlockTaskUs = 7.5;
constexpr double kVerifySeconds = 0.05;
// MEASURED: a launch is issued in 2.8 us, and kKernels + 1 follow the first stamp.
constexpr uint64_t kIssueNs = 30'000;
constexpr size_t kStamps = 2;

uint64_t StampAt(uint64_t* stamp) {
  return std::atomic_ref<uint64_t>(*stamp).load(std::memory_order_acquire);
}

}  // namespace

LcChain::LcChain(Gpu& gpu, const char* name, double solo_us, uint32_t seed)
    : gpu_(gpu), name_(name) {
  const kernels::CatalogueKernel& kernel = *kernels::FindKernel(name);
  if (kernel.variants(&variants_) != 0) Fail(name_ + " does not load");
  void* stamps = nullptr;
  Cuda(cudaHostAlloc(&stamps, kStamps * sizeof(uint64_t), cudaHostAllocMapped), "cudaHostAlloc");
  stamps_ = static_cast<uint64_t*>(stamps);
  for (uint32_t i = 0; i < kKernels; ++i) {
    kernels::WorkloadOptions options;
    options.solo_ms = solo_us / 1000 / kKernels;
    options.block_task_us = kBlockTaskUs;
    options.sms = gpu.sms();
    options.seed = seed + i;
    Require(MakeWorkload(kernel, options, &steps_.emplace_back().workload));
  }
  ClearOutputs();
  static_cast<void>(Ms(gpu.lc_whole()));
  Verify();
}

LcChain::~LcChain() { cudaFreeHost(stamps_); }

void LcChain::Verify() {
  for (Step& step : steps_) {
    Require(step.workload->Checksum(&step.expected));
    kernels::Verification verification;
    Require(step.workload->Verify(kVerifySeconds, &verification));
    if (verification.wrong == 0 && verification.checked > 0) continue;
    Fail(name_ + " is wrong: " + verification.first_wrong);
  }
}

void LcChain::Issue(CUstream_st* stream) {
  for (size_t i = 0; i < kStamps; ++i) {
    std::atomic_ref<uint64_t>(stamps_[i]).store(0, std::memory_order_release);
  }
  Cuda(benchmarks::LaunchStamp(&stamps_[0], kIssueNs, stream), "Stamp<<<>>>");
  for (const Step& step : steps_) {
    const kernels::Grid grid = step.workload->grid();
    void* arguments[] = {const_cast<void*>(step.workload->params())};
    Cuda(cudaLaunchKernel(variants_.original_symbol, dim3(grid.x, grid.y, grid.z),
                          dim3(variants_.threads_per_block), arguments,
                          variants_.dynamic_shared_bytes, stream),
         "cudaLaunchKernel");
  }
  Cuda(benchmarks::LaunchStamp(&stamps_[1], 0, stream), "Stamp<<<>>>");
}

std::optional<double> LcChain::PollMs() const {
  const uint64_t end_ns = StampAt(&stamps_[1]);
  const uint64_t begin_ns = StampAt(&stamps_[0]);
  if (begin_ns == 0 || end_ns == 0) return std::nullopt;
  return static_cast<double>(end_ns - begin_ns) / 1e6;
}

double LcChain::Ms(CUstream_st* stream) {
  Issue(stream);
  const core::TimeNs give_up_ns = gpu_.device().NowNs() + kHungNs;
  while (gpu_.device().NowNs() < give_up_ns) {
    const std::optional<double> ms = PollMs();
    if (ms.has_value()) return *ms;
  }
  Fail("the LC chain of " + name_ + " does not complete");
}

void LcChain::ClearOutputs() {
  for (const Step& step : steps_) Require(step.workload->ClearOutput());
}

void LcChain::CheckOutputs(const std::string& company) {
  for (const Step& step : steps_) {
    uint64_t checksum = 0;
    Require(step.workload->Checksum(&checksum));
    if (checksum == step.expected) continue;
    Fail("the LC chain of " + name_ + " has another answer beside " + company + " than alone");
  }
}

}  // namespace gpushare::quota
