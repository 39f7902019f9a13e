#include "benchmarks/gpu/overlap/co_run.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>

#include "benchmarks/harness/gpu_kernels.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kRunSecondsMax = 20;

bool IsBusy(CUstream_st* stream) {
  if (stream == nullptr) return false;
  const cudaError_t code = cudaStreamQuery(stream);
  if (code == cudaErrorNotReady) return true;
  Cuda(code, "a co-run");
  return false;
}

}  // namespace

CoRun::CoRun() : memory_(sizeof(Record)) {
  // Loads both kernels; the flag is 0 already.
  Cuda(LaunchGate(&record().flag, 0, 0, &record().opened_ns[0], nullptr), "the first gate");
  Cuda(LaunchStamp(0, record().stamps.data(), nullptr), "the first stamp");
  Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void CoRun::SetStamp(Stamp stamp, CUstream_st* stream) {
  Cuda(LaunchStamp(0, &record().stamps[stamp], stream), "a time stamp");
}

double CoRun::Ms(Stamp stamp) const {
  const uint64_t ns =
      std::atomic_ref<uint64_t>(record().stamps[stamp]).load(std::memory_order_acquire);
  uint64_t begin_ns = record().opened_ns[0];
  if (record().opened_ns[1] != 0) begin_ns = std::min(begin_ns, record().opened_ns[1]);
  return ns > begin_ns ? static_cast<double>(ns - begin_ns) / 1e6 : 0;
}

double CoRun::TotalMs() const { return std::max(Ms(kEndA), Ms(kEndB)); }

void CoRun::EnqueueAll(const Work& work) {
  Cuda(LaunchGate(&record().flag, opened_, 0, &record().opened_ns[0], work.a), "a gate");
  if (work.b != nullptr) {
    Cuda(LaunchGate(&record().flag, opened_, work.b_delay_ns, &record().opened_ns[1], work.b),
         "a gate");
  }
  work.on_a();
  SetStamp(kEndA, work.a);
  if (work.b == nullptr) return;
  work.on_b();
  SetStamp(kEndB, work.b);
}

void CoRun::Run(const Work& work) {
  record().stamps.fill(0);
  record().opened_ns.fill(0);
  std::atomic_ref<uint32_t> flag(record().flag);
  ++opened_;
  if (work.warm_up) flag.store(opened_, std::memory_order_release);
  std::exception_ptr failed;
  const auto attempt = [&failed](const Enqueue& step) {
    if (failed || !step) return;
    try {
      step();
    } catch (const Failure&) {
      failed = std::current_exception();
    }
  };
  attempt([&] { EnqueueAll(work); });
  // Also after a failure: what was enqueued must not wait.
  flag.store(opened_, std::memory_order_release);
  const double give_up = NowSeconds() + kRunSecondsMax;
  for (;;) {
    const bool a_is_busy = IsBusy(work.a);
    const bool b_is_busy = IsBusy(work.b);
    if (!a_is_busy && !b_is_busy) break;
    attempt(work.meanwhile);
    if (NowSeconds() > give_up) {
      Fail("A co-run takes longer than " + std::to_string(kRunSecondsMax) + " s.");
    }
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace gpushare::benchmarks
