// Measures eviction latencies of one kernel: whole tasks, evicted at random moments and resumed
// until they are done.
//
// The last stage of a kernel. Invariant: the block tasks of all launches of a task add up to the
// task; if they do not, the calibration fails. Threads: one.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/calibration/base/statistics.h"
#include "src/calibration/kernel/kernel_stages.h"
#include "src/core/base/quantile.h"
#include "src/core/base/random.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

// Fewer evictions have no p99. They take a few block tasks each and are made however little time
// there is.
constexpr size_t kEvictionsLeast = 16;
// Launches of one task from its start to its end.
constexpr int kResumesMax = 2 * kEvictionSamplesMax;
// Whole tasks in a row that may end before an eviction finds them at work.
constexpr int kTasksWithoutEviction = 16;
// An eviction comes at least this share of a block task into the launch, so that workers have
// begun.
constexpr double kEarliestShare = 0.2;

class EvictionMeter {
 public:
  EvictionMeter(KernelRun& run, const KernelMeasurement& kernel)
      : run_(run), kernel_(kernel), random_(run.options.seed) {}

  // One whole task, evicted and resumed until it is done.
  absl::Status EvictOneTask();

  bool TakeMore() const {
    return run_.TakeMore(samples_.size(), kEvictionsLeast, run_.options.evictions);
  }
  std::vector<int64_t>& samples() { return samples_; }

 private:
  // From the launch call to the eviction call: within the first rounds of the launch. Random,
  // because the moments must not follow the block tasks.
  core::TimeNs RandomWaitNs() {
    const double rounds =
        Ratio(static_cast<double>(run_.item.block_tasks), static_cast<double>(run_.round()));
    const double tasks = kEarliestShare + random_.Uniform() * std::clamp(rounds - 1, 0.6, 4.0);
    const auto launch_ns =
        static_cast<double>(run_.timer.device().capabilities().profile.launch_latency_ns);
    return static_cast<core::TimeNs>(launch_ns +
                                     tasks * static_cast<double>(kernel_.block_task_ns));
  }
  absl::Status CheckDone(int64_t done) const {
    if (done == run_.item.block_tasks) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("Kernel '", kernel_.name, "' executed ", done, " of ",
                                            run_.item.block_tasks,
                                            " block tasks across its evictions."));
  }

  KernelRun& run_;
  const KernelMeasurement& kernel_;
  std::vector<int64_t> samples_;
  core::Random random_;
};

absl::Status EvictionMeter::EvictOneTask() {
  core::LaunchRequest request = run_.Workers();
  int64_t done = 0;
  for (int resumed = 0;; ++resumed) {
    GPUSHARE_RETURN_IF_ERROR(run_.timer.Begin(request));
    request.parts[0].reset_counter = false;  // the next launch continues this one
    run_.timer.Wait(RandomWaitNs());
    GPUSHARE_ASSIGN_OR_RETURN(const core::TimeNs called, run_.timer.Evict(run_.worker_lane));
    GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> left, run_.timer.Finish());
    const core::DeviceCompletion& completion = left.front().completion;
    done += completion.block_tasks_done;
    if (completion.outcome != core::Outcome::kEvicted) return CheckDone(done);
    // Workers that had not begun left at once: no work was evicted.
    const int64_t latency = completion.end_ns - called;
    if (completion.block_tasks_done > 0 && latency > 0) samples_.push_back(latency);
    GPUSHARE_RETURN_IF_ERROR(run_.timer.CheckCancelled());
    if (!TakeMore() || resumed >= kResumesMax) break;
  }
  GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch rest, run_.timer.RunOne(request));
  return CheckDone(done + rest.completion.block_tasks_done);
}

}  // namespace

absl::Status MeasureEvictions(KernelRun& run, KernelMeasurement& out) {
  run.BeginStage(kEvictionEnd);
  if (!run.evictable() || !run.timer.device().capabilities().eviction) return absl::OkStatus();
  EvictionMeter meter(run, out);
  int tasks_without = 0;
  while (meter.TakeMore() && tasks_without < kTasksWithoutEviction) {
    const size_t before = meter.samples().size();
    GPUSHARE_RETURN_IF_ERROR(meter.EvictOneTask());
    tasks_without = meter.samples().size() == before ? tasks_without + 1 : 0;
  }
  if (meter.samples().empty()) {
    run.notes.push_back(absl::StrCat("Kernel '", out.name, "' ended before any of ",
                                     kTasksWithoutEviction,
                                     " evictions met it: its sample is too short for an eviction "
                                     "latency."));
    return absl::OkStatus();
  }
  out.eviction_p50_ns = core::Quantile(meter.samples(), 0.5);
  out.eviction_p99_ns = core::Quantile(meter.samples(), 0.99);
  out.eviction_ns = std::move(meter.samples());
  return absl::OkStatus();
}

}  // namespace gpushare::models
