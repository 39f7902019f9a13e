// Counting of one kernel; see pre_run.h.

#include "src/calibration/pre_run/pre_run.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/calibration/kernel/curves.h"
#include "src/calibration/launch/request.h"
#include "src/calibration/launch/timing.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/core/checks/kernel_check.h"
#include "src/core/checks/occupancy.h"
#include "src/core/seams/sliceable.h"
#include "src/models/profile/profile_limits.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

constexpr int32_t kWorkersPoints = 8;  // numbers of workers an SM whose speed is measured
constexpr int kRepeats = 3;            // of a duration, whose median counts
constexpr int kEstimates = 2;          // of how long a block task takes

class Run {
 public:
  Run(core::Device& device, const CalibrationItem& given, const CalibrationOptions& options)
      : device_(device), item_(given), timer_(device, options) {}

  absl::StatusOr<PreRunResult> Measure() {
    GPUSHARE_RETURN_IF_ERROR(Prepare());
    PreRunResult result;
    absl::Status status = Choose();
    if (status.ok()) status = Count(result);
    if (status.ok()) status = MeasureWorkers(result);
    if (status.ok()) return result;
    timer_.Drain();
    return status;
  }

 private:
  bool evictable() const { return item_.kernel.evictable; }
  int32_t sm_count() const { return device_.capabilities().profile.sm_count; }
  // Block tasks that the whole device runs at once.
  int64_t Round() const { return int64_t{workers_per_sm_} * sm_count(); }

  absl::Status Prepare() {
    if (!item_.has_block_tasks() || item_.block_tasks < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("The sample of '", item_.kernel.name, "' has ", item_.block_tasks,
                       " block tasks, and a pre-run needs a kernel with at least 1."));
    }
    core::KernelDesc& kernel = item_.kernel;
    kernel.id = core::KernelId{1};
    if (!device_.capabilities().eviction) kernel.evictable = false;
    GPUSHARE_RETURN_IF_ERROR(device_.DescribeKernel(kernel));
    core::FillUnknown(kernel);
    GPUSHARE_RETURN_IF_ERROR(core::CheckKernel(kernel));
    GPUSHARE_RETURN_IF_ERROR(device_.PrepareKernel(kernel));
    workers_per_sm_ = core::WorkersPerSm(kernel, device_.capabilities().profile);
    GPUSHARE_ASSIGN_OR_RETURN(plain_lane_, device_.CreateLane({}));
    if (!evictable()) return absl::OkStatus();
    GPUSHARE_ASSIGN_OR_RETURN(worker_lane_, device_.CreateLane({.evictable = true}));
    return absl::OkStatus();
  }

  // The next part of the task, so that the L2 cache has not just seen its data. All parts are of
  // one size.
  core::LaunchRequest Next() {
    if (block_tasks_ == item_.block_tasks) return OrdinaryRequest(item_, plain_lane_);
    if (next_ + block_tasks_ > item_.block_tasks) next_ = 0;
    const int64_t begin = next_;
    next_ += block_tasks_;
    return SliceRequest(item_, plain_lane_, begin, block_tasks_);
  }

  // How many block tasks a launch has: all, or as many whole rounds as take kPreRunNs. One round
  // has the ramps of a launch in it, so that a longer launch says better how long a round takes.
  absl::Status Choose() {
    block_tasks_ = item_.block_tasks;
    if (core::IsSliceable(item_.kernel) && Round() < item_.block_tasks) {
      block_tasks_ = Round();
      GPUSHARE_RETURN_IF_ERROR(timer_.RunOne(Next()).status());  // the first launch is slow
      for (int i = 0; i < kEstimates && block_tasks_ < item_.block_tasks; ++i) {
        GPUSHARE_ASSIGN_OR_RETURN(const double ns, MedianNs(Next()));
        const double block_task_ns = ns / static_cast<double>(block_tasks_);
        const double rounds =
            std::round(kPreRunNs / (block_task_ns * static_cast<double>(Round())));
        const bool whole =
            block_task_ns * static_cast<double>(item_.block_tasks) <= kPreRunWholeNs ||
            rounds * static_cast<double>(Round()) >= static_cast<double>(item_.block_tasks);
        block_tasks_ =
            whole ? item_.block_tasks : std::max<int64_t>(1, std::llround(rounds)) * Round();
      }
    }
    next_ = 0;
    return timer_.RunOne(Next()).status();
  }

  absl::StatusOr<double> MedianNs(const core::LaunchRequest& request) {
    std::vector<double> times;
    for (int i = 0; i < kRepeats; ++i) {
      GPUSHARE_RETURN_IF_ERROR(timer_.CheckCancelled());
      GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch one, timer_.RunOne(request));
      times.push_back(one.duration_ns());
    }
    const double median = Median(std::move(times));
    if (median > 0) return median;
    return absl::FailedPreconditionError(
        absl::StrCat("The sample of '", item_.kernel.name, "' takes no time on the device."));
  }

  absl::Status Count(PreRunResult& result) {
    const auto run = [this]() -> absl::Status {
      GPUSHARE_RETURN_IF_ERROR(timer_.CheckCancelled());
      return timer_.RunOne(Next()).status();
    };
    GPUSHARE_ASSIGN_OR_RETURN(const core::LaunchCounts counts, device_.CountLaunches(run));
    result.block_tasks = block_tasks_;
    result.counters = CountersOf(counts, block_tasks_);
    return absl::OkStatus();
  }

  // Speed over workers an SM, of the same block tasks.
  absl::Status MeasureWorkers(PreRunResult& result) {
    const int32_t most = workers_per_sm_;
    if (!evictable() || most < 2 || block_tasks_ < Round()) return absl::OkStatus();
    std::vector<double> speeds(static_cast<size_t>(most));
    speeds.back() = 1;
    GPUSHARE_ASSIGN_OR_RETURN(const double full_ns, WorkersNs(most));
    const int32_t step = (most + kWorkersPoints - 1) / kWorkersPoints;
    for (int32_t workers = most - step; workers >= 1; workers -= step) {
      GPUSHARE_ASSIGN_OR_RETURN(const double ns, WorkersNs(workers));
      speeds[static_cast<size_t>(workers) - 1] = full_ns / ns;
    }
    result.saturating_occupancy = FitSaturatingOccupancy(speeds);
    return absl::OkStatus();
  }

  absl::StatusOr<double> WorkersNs(int32_t workers_per_sm) {
    return MedianNs(WorkerRequest(item_, worker_lane_, block_tasks_, workers_per_sm * sm_count()));
  }

  core::Device& device_;
  CalibrationItem item_;
  LaunchTimer timer_;
  int32_t workers_per_sm_ = 1;
  core::LaneIndex plain_lane_ = core::kNoLane;
  core::LaneIndex worker_lane_ = core::kNoLane;
  int64_t block_tasks_ = 0;  // of a launch
  int64_t next_ = 0;         // the first block task of the next part
};

double Over(double value, double by) { return by > 0 ? value / by : 0; }

}  // namespace

core::KernelCounters CountersOf(const core::LaunchCounts& counts, int64_t block_tasks) {
  const auto tasks = static_cast<double>(block_tasks);
  core::KernelCounters counters;
  counters.instructions = Over(counts.instructions, tasks);
  counters.memory_instructions =
      std::min(counters.instructions, Over(counts.memory_instructions, tasks));
  counters.sectors_per_request =
      std::min(kSectorsPerRequestMax, Over(counts.sectors, counts.requests));
  counters.issue = counts.issue;
  counters.fma = counts.fma;
  counters.alu = counts.alu;
  counters.tensor = counts.tensor;
  counters.special = counts.special;
  counters.lsu = counts.lsu;
  counters.shared = counts.shared;
  counters.l1 = counts.l1;
  counters.l2 = counts.l2;
  counters.dram = counts.dram;
  counters.dram_write =
      counts.dram * Over(counts.dram_write_bytes, counts.dram_read_bytes + counts.dram_write_bytes);
  return counters;
}

absl::StatusOr<PreRunResult> PreRun(core::Device& device, const CalibrationItem& item,
                                    const CalibrationOptions& options) {
  if (options.hang_limit_ns <= 0 || options.hang_limit_ns > core::kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat("The hang limit is ", options.hang_limit_ns,
                                                   " ns, and it must be above 0, at most ",
                                                   core::kMaxDurationNs, " ns."));
  }
  return Run(device, item, options).Measure();
}

}  // namespace gpushare::models
