// See quota_limited_kernel.h.

#include "benchmarks/gpu/quota_limited_kernel.h"

#include <atomic>
#include <string>

#include "absl/types/span.h"
#include "benchmarks/gpu/quota.h"

namespace gpushare::quota {

const char* NameOf(Way way) {
  constexpr std::array<const char*, 4> kNames = {"packed", "spread", "retreat", "retreat_x4"};
  return kNames[static_cast<size_t>(way)];
}

LimitedKernel::LimitedKernel(Gpu& gpu, const char* name, int (*variants)(gpushare_kernel_variants*),
                             uint32_t id)
    : gpu_(gpu) {
  if (variants(&task_.variants) != 0) Fail(std::string(name) + " does not load");
  desc_.id = core::KernelId{id};
  desc_.name = name;
  desc_.threads_per_block = static_cast<int32_t>(task_.variants.threads_per_block);
  desc_.dynamic_shared_memory_bytes = static_cast<int32_t>(task_.variants.dynamic_shared_bytes);
  desc_.registers_per_thread = 0;
  desc_.workers_per_sm_max = static_cast<int32_t>(task_.variants.workers_per_sm);
  desc_.original_function = task_.variants.original_function;
  desc_.worker_function = task_.variants.worker_function;
  desc_.evictable = true;
  Require(gpu.device().DescribeKernel(desc_));
  Require(gpu.device().PrepareKernel(desc_));
}

void LimitedKernel::SetTask(const void* params, size_t params_bytes, kernels::Grid grid) {
  task_.params = params;
  task_.grid = grid;
  params_bytes_ = params_bytes;
}

void LimitedKernel::Start(Way way, int quota) {
  switch (way) {
    case Way::kPacked:
      return StartOnLane(gpu_.packed(quota), 0);
    case Way::kSpread:
      return StartOnLane(gpu_.whole(), quota * workers_per_sm());
    case Way::kRetreat:
      return StartRetreating(quota, 1);
    case Way::kRetreatX4:
      return StartRetreating(quota, kOverfill);
  }
}

std::optional<double> LimitedKernel::PollMs() {
  return retreating_ ? PollRetreatingMs() : PollLaneMs();
}

double LimitedKernel::Ms(Way way, int quota) {
  Start(way, quota);
  return WaitMs();
}

double LimitedKernel::SoloMs() {
  StartOnLane(gpu_.whole(), 0);
  return WaitMs();
}

void LimitedKernel::StartOnLane(Lane& lane, int workers) {
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{++launches_};
  request.parts[0].lane = lane.index;
  request.form = core::Form::kWorkers;
  request.parts[0].work.kernel = &desc_;
  request.parts[0].block_count = block_tasks();
  request.parts[0].work.grid[0] = static_cast<int32_t>(task_.grid.x);
  request.parts[0].work.grid[1] = static_cast<int32_t>(task_.grid.y);
  request.parts[0].work.grid[2] = static_cast<int32_t>(task_.grid.z);
  request.workers = workers;
  request.parts[0].counter = 0;
  request.parts[0].reset_counter = true;
  request.parts[0].epoch = ++lane.epoch;
  request.parts[0].work.arguments = task_.params;
  request.parts[0].work.arguments_bytes = static_cast<uint32_t>(params_bytes_);
  retreating_ = false;
  Require(gpu_.device().Launch(request));
}

void LimitedKernel::StartRetreating(int quota, uint32_t fill) {
  kernels::FormLauncher& launcher = gpu_.launcher();
  Require(launcher.BeginTask());
  header_ = launcher.Header(task_);
  header_.sm_first = 0;
  header_.sm_count = static_cast<uint32_t>(quota);
  retreating_ = true;
  Require(launcher.LaunchWorkers(task_, header_, fill * launcher.FullWorkers(task_)));
}

std::optional<double> LimitedKernel::PollLaneMs() {
  std::array<core::DeviceCompletion, 4> out;
  if (gpu_.device().PollCompletions(absl::MakeSpan(out)) == 0) return std::nullopt;
  CheckDone(out[0].block_tasks_done);
  return static_cast<double>(out[0].end_ns - out[0].start_ns) / 1e6;
}

std::optional<double> LimitedKernel::PollRetreatingMs() {
  // The last worker writes the sequence, in mapped memory; acquire: after the rest of the record.
  const std::atomic_ref<uint64_t> sequence(header_.completion->sequence);
  if (sequence.load(std::memory_order_acquire) != header_.sequence) return std::nullopt;
  gpushare_worker_completion record = {};
  Require(gpu_.launcher().Finish(header_, &record));
  CheckDone(record.block_tasks_done);
  return static_cast<double>(record.end_globaltimer_ns - record.start_globaltimer_ns) / 1e6;
}

double LimitedKernel::WaitMs() {
  const core::TimeNs give_up_ns = gpu_.device().NowNs() + kHungNs;
  while (gpu_.device().NowNs() < give_up_ns) {
    const std::optional<double> ms = PollMs();
    if (ms.has_value()) return *ms;
  }
  Fail(desc_.name + " does not complete");
}

void LimitedKernel::CheckDone(int64_t done) const {
  if (done == int64_t{block_tasks()}) return;
  Fail(desc_.name + " executed " + std::to_string(done) + " block tasks, and the task has " +
       std::to_string(block_tasks()));
}

}  // namespace gpushare::quota
