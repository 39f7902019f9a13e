// The kernel of the lane probe. See lane_probe.h. CUDA C++17, without Abseil and Eigen.

#include <cuda_runtime.h>

#include <gpushare/device/variants.cuh>

#include "src/cuda/lanes/lane_probe.h"

namespace gpushare::cuda {

// Every block task ends by its own clock, so the launch ends even if nobody evicts it.
struct GpushareLaneProbe {
  using Params = LaneProbeParams;
  struct Shared {};
  struct State {};
  static constexpr int kThreads = kLaneProbeThreads;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    if (ctx.thread() == 0) {
      *const_cast<volatile uint64_t*>(params.running) = params.mark;
      __threadfence_system();
    }
    const uint64_t end_ns = device::GlobalTimerNs() + params.block_task_ns;
    while (device::GlobalTimerNs() < end_ns) {
    }
  }
};
GPUSHARE_KERNEL(GpushareLaneProbe);

void* LaneProbeFunction() {
  gpushare_kernel_variants variants = {};
  if (GpushareLaneProbe_variants(&variants) != 0) return nullptr;
  return variants.worker_function;
}

}  // namespace gpushare::cuda
