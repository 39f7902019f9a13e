#include "benchmarks/harness/gpu_seam.h"

#include <array>

#include "absl/types/span.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/cuda_device.h"

namespace gpushare::benchmarks {

std::unique_ptr<core::Device> OpenSeam() {
  return Take(cuda::MakeCudaDevice(0, core::DeviceProfile()), kNoGpu);
}

void Prepare(core::Device& device, const char* name, uint32_t id,
             const gpushare_kernel_variants& variants, core::KernelDesc* kernel) {
  kernel->id = core::KernelId{id};
  kernel->name = name;
  kernel->resources.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
  kernel->resources.dynamic_shared_memory_bytes =
      static_cast<int32_t>(variants.dynamic_shared_bytes);
  kernel->resources.registers_per_thread = 0;
  kernel->resources.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
  kernel->functions()->original = variants.original_function;
  kernel->functions()->worker = variants.worker_function;
  kernel->evictable = true;
  Require(device.DescribeKernel(*kernel));
  Require(device.PrepareKernel(*kernel));
}

SeamLane::SeamLane(core::Device& device, core::PlaceIndex place)
    : device_(device),
      lane_(Take(device.CreateLane(
          {.place = place, .priority = core::LanePriority::kLow, .evictable = true}))) {}

void SeamLane::Launch(const SeamTask& task) {
  core::LaunchRequest request;
  request.form = core::Form::kWorkers;
  request.workers = task.workers;
  core::LaunchPart& part = request.parts[0];
  part.launch = core::LaunchId{++launches_};
  part.lane = lane_;
  part.work.kernel = task.kernel;
  part.work.grid = {static_cast<int32_t>(task.grid.x), static_cast<int32_t>(task.grid.y),
                    static_cast<int32_t>(task.grid.z)};
  part.work.arguments = task.params;
  part.work.arguments_bytes = task.params_bytes;
  part.block_count = task.block_tasks;
  part.counter = 0;
  part.reset_counter = task.begin;
  part.epoch = ++epoch_;
  Require(device_.Launch(request));
}

void SeamLane::Evict() { Require(device_.Evict(lane_, epoch_, 0)); }

std::optional<core::DeviceCompletion> Poll(core::Device& device) {
  std::array<core::DeviceCompletion, 4> out;
  if (device.PollCompletions(absl::MakeSpan(out)) == 0) return std::nullopt;
  return out[0];
}

void Spin(const core::Device& device, core::TimeNs ns) {
  const core::TimeNs until_ns = device.NowNs() + ns;
  while (device.NowNs() < until_ns) {
  }
}

}  // namespace gpushare::benchmarks
