// See co_run.h.

#include "benchmarks/gpu/co_run.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>

#include "benchmarks/gpu/co_run_kernels.h"
#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::benchmarks {
namespace {

constexpr std::chrono::seconds kRunMax{20};

}  // namespace

struct CoRun::Record {
  std::array<uint64_t, kStamps> stamps;
  std::array<uint64_t, 2> opened_ns;  // of a's and b's gate
  uint32_t flag;
  uint32_t unused;
};

CoRun::~CoRun() {
  if (record_ != nullptr) cudaFreeHost(record_);
}

kernels::Status CoRun::Init() {
  void* memory = nullptr;
  const kernels::Status status = kernels::CudaStatus(
      cudaHostAlloc(&memory, sizeof(Record), cudaHostAllocMapped), "cudaHostAlloc");
  if (!status.ok()) return status;
  std::memset(memory, 0, sizeof(Record));
  record_ = static_cast<Record*>(memory);
  // Loads both kernels; the flag is 0 already.
  int code = LaunchGate(&record_->flag, 0, 0, &record_->opened_ns[0], nullptr);
  if (code == 0) code = LaunchTimeStamp(record_->stamps.data(), nullptr);
  if (code == 0) code = cudaDeviceSynchronize();
  return kernels::CudaStatus(code, "the first gate");
}

kernels::Status CoRun::SetStamp(Stamp stamp, CUstream_st* stream) {
  return kernels::CudaStatus(LaunchTimeStamp(&record_->stamps[stamp], stream), "a time stamp");
}

double CoRun::Ms(Stamp stamp) const {
  const uint64_t ns =
      std::atomic_ref<uint64_t>(record_->stamps[stamp]).load(std::memory_order_acquire);
  uint64_t begin_ns = record_->opened_ns[0];
  if (record_->opened_ns[1] != 0) begin_ns = std::min(begin_ns, record_->opened_ns[1]);
  return ns > begin_ns ? static_cast<double>(ns - begin_ns) / 1e6 : 0;
}

double CoRun::TotalMs() const { return std::max(Ms(kEndA), Ms(kEndB)); }

kernels::Status CoRun::Run(const Work& work) {
  record_->stamps.fill(0);
  record_->opened_ns.fill(0);
  std::atomic_ref<uint32_t> flag(record_->flag);
  ++opened_;
  if (work.warm_up) flag.store(opened_, std::memory_order_release);
  kernels::Status status = kernels::CudaStatus(
      LaunchGate(&record_->flag, opened_, 0, &record_->opened_ns[0], work.a), "a gate");
  if (status.ok() && work.b != nullptr) {
    status = kernels::CudaStatus(
        LaunchGate(&record_->flag, opened_, work.b_delay_ns, &record_->opened_ns[1], work.b),
        "a gate");
  }
  if (status.ok()) status = work.on_a();
  if (status.ok()) status = SetStamp(kEndA, work.a);
  if (status.ok() && work.b != nullptr) {
    status = work.on_b();
    if (status.ok()) status = SetStamp(kEndB, work.b);
  }
  // Also after an error: what was enqueued must not wait.
  flag.store(opened_, std::memory_order_release);
  const auto give_up = std::chrono::steady_clock::now() + kRunMax;
  for (;;) {
    bool busy = false;
    for (CUstream_st* const stream : {work.a, work.b}) {
      if (stream == nullptr) continue;
      const cudaError_t code = cudaStreamQuery(stream);
      if (code == cudaErrorNotReady) {
        busy = true;
      } else if (code != cudaSuccess) {
        return kernels::CudaStatus(code, "a co-run");
      }
    }
    if (!busy) return status;
    if (status.ok() && work.meanwhile) status = work.meanwhile();
    if (std::chrono::steady_clock::now() > give_up) {
      status.code = -1;
      status.message = "A co-run takes longer than " + std::to_string(kRunMax.count()) + " s.";
      return status;
    }
  }
}

}  // namespace gpushare::benchmarks
