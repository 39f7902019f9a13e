// See quota_probe.h.

#include "benchmarks/gpu/quota_probe.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include "benchmarks/gpu/quota.h"
#include "benchmarks/gpu/quota_buffers.h"

namespace gpushare::quota {
namespace {

constexpr uint64_t kSpinNs = 20'000;
constexpr uint32_t kRounds = 20;     // block tasks a worker of the quota
constexpr uint32_t kRestRounds = 2;  // block tasks a place for one on the whole GPU

uint32_t Used(const std::vector<uint32_t>& counts) {
  return static_cast<uint32_t>(
      std::count_if(counts.begin(), counts.end(), [](uint32_t count) { return count > 0; }));
}

void CheckSms(Way way, int quota, const std::vector<uint32_t>& by_sm) {
  if (way == Way::kSpread) return;
  if (Used(by_sm) > static_cast<uint32_t>(quota)) {
    Fail("a quota of " + std::to_string(quota) + " SMs ran on " + std::to_string(Used(by_sm)) +
         " under " + NameOf(way));
  }
  if (way == Way::kPacked) return;
  for (size_t sm = static_cast<size_t>(quota); sm < by_sm.size(); ++sm) {
    if (by_sm[sm] == 0) continue;
    Fail("SM " + std::to_string(sm) + " executed a block task, and its workers retreat");
  }
}

}  // namespace

uint32_t Probe::Seen::sms() const { return Used(by_sm); }

Probe::Probe(Gpu& gpu, uint32_t id)
    : gpu_(gpu), kernel_(gpu, "probe", gpushare_quota_probe_variants, id) {
  const auto full = static_cast<uint32_t>(gpu.sms() * kernel_.workers_per_sm());
  Require(executions_.Allocate(size_t{full} * kRounds * sizeof(uint32_t)));
  Require(by_sm_.Allocate(static_cast<size_t>(gpu.sms()) * sizeof(uint32_t)));
  // The leader is a block too.
  Require(by_block_.Allocate((size_t{full} * kOverfill + 1) * sizeof(uint32_t)));
  static_assert(kRestRounds <= kRounds && kRestRounds <= kOverfill);
  params_ = {executions_.as<uint32_t>(), by_sm_.as<uint32_t>(), by_block_.as<uint32_t>(), kSpinNs};
}

Probe::Seen Probe::Run(Way way, int quota) {
  const auto block_tasks = static_cast<uint32_t>(quota * kernel_.workers_per_sm()) * kRounds;
  kernel_.SetTask(&params_, sizeof(params_), {block_tasks, 1, 1});
  Begin(block_tasks);
  static_cast<void>(kernel_.Ms(way, quota));
  Seen seen = End(block_tasks);
  CheckSms(way, quota, seen.by_sm);
  return seen;
}

void Probe::CheckRest(int quota) {
  const Seen packed = Run(Way::kPacked, quota);
  const auto block_tasks =
      static_cast<uint32_t>(gpu_.sms() * kernel_.workers_per_sm()) * kRestRounds;
  Begin(block_tasks);
  gpushare_kernel_variants variants = {};
  Cuda(gpushare_quota_probe_variants(&variants), "gpushare_quota_probe_variants");
  void* arguments[] = {&params_};
  CUstream_st* const stream = gpu_.lc_rest(quota);
  Cuda(cudaLaunchKernel(variants.original_symbol, dim3(block_tasks),
                        dim3(variants.threads_per_block), arguments, variants.dynamic_shared_bytes,
                        stream),
       "cudaLaunchKernel");
  Cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const Seen rest = End(block_tasks);
  for (size_t sm = 0; sm < rest.by_sm.size(); ++sm) {
    if (rest.by_sm[sm] == 0 || packed.by_sm[sm] == 0) continue;
    Fail("SM " + std::to_string(sm) + " belongs to the partition of " + std::to_string(quota) +
         " SMs and to the one of all others");
  }
}

void Probe::Begin(uint32_t block_tasks) {
  if (block_tasks * sizeof(uint32_t) > executions_.bytes()) {
    Fail("the probe has no room for " + std::to_string(block_tasks) + " block tasks");
  }
  for (const kernels::DeviceBuffer* buffer : {&executions_, &by_sm_, &by_block_}) Zero(*buffer);
}

Probe::Seen Probe::End(uint32_t block_tasks) const {
  const std::vector<uint32_t> executions = Words(executions_);
  for (uint32_t i = 0; i < block_tasks; ++i) {
    if (executions[i] == 1) continue;
    Fail("block task " + std::to_string(i) + " of the probe ran " + std::to_string(executions[i]) +
         " times");
  }
  return {Words(by_sm_), Used(Words(by_block_))};
}

}  // namespace gpushare::quota
