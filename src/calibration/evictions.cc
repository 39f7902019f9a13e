// Eviction latencies of one kernel: whole tasks, evicted at random moments and resumed until they
// are done. The part of KernelMeter (calibration_kernel.h) that comes last.
//
// Invariant: the block tasks of all launches of a task add up to the task, else the calibration
// fails. Threads: one.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/curves.h"
#include "src/calibration/kernel.h"

namespace gpushare::models {
namespace {

// Of the kernel's time, since the first of its stages that come later: all that its basics leave.
constexpr double kEvictionEnd = 1 - kBasicsShare;
// Evictions of one kernel, however little time there is: they take a few block tasks each, and
// fewer have no p99.
constexpr size_t kEvictionsLeast = 16;
// Launches of one task between two of its ends.
constexpr int kResumesMax = 2 * kEvictionSamplesMax;
// Whole tasks that may pass without an eviction that met work.
constexpr int kTasksWithoutEviction = 16;

}  // namespace

bool KernelMeter::MoreEvictions(size_t taken) const {
  const auto most = static_cast<size_t>(options_.evictions);
  return taken < most && (taken < kEvictionsLeast || TimeLeft());
}

double KernelMeter::RandomShare() {
  // Steele's SplitMix64: the moments must not follow the block tasks.
  random_ += 0x9E3779B97F4A7C15u;
  uint64_t z = random_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

absl::Status KernelMeter::EvictOneTask(std::vector<int64_t>& samples) {
  const double task = static_cast<double>(out_.block_task_ns);
  const double rounds = Ratio(static_cast<double>(item_.block_tasks), static_cast<double>(round()));
  const auto launch_ns =
      static_cast<double>(timer_.device().capabilities().profile.launch_latency_ns);
  int64_t done = 0;
  for (int resumed = 0;; ++resumed) {
    core::LaunchRequest request = Workers(item_.block_tasks, 0);
    request.parts[0].reset_counter = resumed == 0;
    if (absl::Status status = timer_.Begin(request); !status.ok()) return status;
    // At least a fifth of a block task in, so that the workers have begun; within the first rounds.
    const double wait = 0.2 + RandomShare() * std::clamp(rounds - 1, 0.6, 4.0);
    timer_.WaitUntil(timer_.device().NowNs() + static_cast<core::TimeNs>(launch_ns + wait * task));
    absl::StatusOr<core::TimeNs> called = timer_.Evict(worker_lane_);
    if (!called.ok()) return called.status();
    absl::StatusOr<std::vector<TimedLaunch>> left = timer_.Finish();
    if (!left.ok()) return left.status();
    const core::DeviceCompletion& completion = left->front().completion;
    done += completion.block_tasks_done;
    if (completion.outcome != core::Outcome::kEvicted) break;
    // Workers that had not begun left at once: that is no eviction of work.
    const int64_t latency = completion.end_ns - *called;
    if (completion.block_tasks_done > 0 && latency > 0) samples.push_back(latency);
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    if (!MoreEvictions(samples.size()) || resumed >= kResumesMax) {
      // The rest of the task, in one go.
      request.parts[0].reset_counter = false;
      absl::StatusOr<TimedLaunch> rest = timer_.RunOne(request);
      if (!rest.ok()) return rest.status();
      done += rest->completion.block_tasks_done;
      break;
    }
  }
  if (done == item_.block_tasks) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("Kernel '", out_.name, "' executed ", done, " of ",
                                          item_.block_tasks, " block tasks across its evictions."));
}

absl::Status KernelMeter::MeasureEvictions() {
  BeginStage(kEvictionEnd);
  if (!evictable() || !timer_.device().capabilities().eviction) return absl::OkStatus();
  std::vector<int64_t> samples;
  int tasks_without = 0;
  while (MoreEvictions(samples.size()) && tasks_without < kTasksWithoutEviction) {
    const size_t before = samples.size();
    if (absl::Status status = EvictOneTask(samples); !status.ok()) return status;
    tasks_without = samples.size() == before ? tasks_without + 1 : 0;
  }
  if (samples.empty()) {
    notes_.push_back(absl::StrCat("Kernel '", out_.name, "' ended before any of ",
                                  kTasksWithoutEviction,
                                  " evictions met it: its sample is too short for an eviction "
                                  "latency."));
    return absl::OkStatus();
  }
  const std::vector<double> values(samples.begin(), samples.end());
  out_.eviction_p50_ns = std::llround(Quantile(values, 0.5));
  out_.eviction_p99_ns = std::llround(Quantile(values, 0.99));
  out_.eviction_ns = std::move(samples);
  return absl::OkStatus();
}

}  // namespace gpushare::models
