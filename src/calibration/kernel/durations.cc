// Measures how long a kernel and its block tasks take on the whole device.
//
// The first stage of a kernel. Ordinary and worker launches are timed in turn, so that a drift of
// the clocks affects both alike. docs/calibration.md has the formulas. Threads: one.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "src/calibration/base/statistics.h"
#include "src/calibration/kernel/kernel_stages.h"
#include "src/calibration/profile/profile.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// In fewer rounds the launch ramp and the tail cannot be separated from the block task.
constexpr int64_t kRoundsForSlope = 4;
// A shorter tail is the launch ramp, not the spread of block tasks.
constexpr double kRampNs = 3000;
constexpr double kSpreadSeen = 0.03;

// The first launch of each form loads modules and warms caches and clocks; it does not count.
// Returns the host's time of a warm launch.
absl::StatusOr<double> WarmUp(KernelRun& run) {
  double last_ns = 0;
  for (int i = 0; i < 2; ++i) {
    GPUSHARE_ASSIGN_OR_RETURN(TimedLaunch one, run.timer.RunOne(run.Ordinary()));
    if (run.evictable()) {
      GPUSHARE_ASSIGN_OR_RETURN(one, run.timer.RunOne(run.Workers()));
    }
    last_ns = one.round_trip_ns();
  }
  return last_ns;
}

// The median of the overheads that a profile can hold. If it can hold none of them, they are all on
// one side, and the nearest bound stands for them.
void SetOverhead(const KernelRun& run, absl::Span<const double> ratios, KernelMeasurement& out) {
  if (ratios.empty()) return;
  std::vector<double> possible;
  for (const double ratio : ratios) {
    const double overhead = ratio - 1;
    if (overhead < core::kMinWorkerOverhead || overhead > core::kMaxWorkerOverhead) continue;
    possible.push_back(overhead);
  }
  run.NoteImpossible(ratios.size() - possible.size(),
                     absl::StrCat("samples of the PTB overhead, outside of ",
                                  core::kMinWorkerOverhead, " to ", core::kMaxWorkerOverhead, ","));
  if (possible.empty()) possible.push_back(Median({ratios.begin(), ratios.end()}) - 1);
  out.worker_overhead = Median(std::move(possible));
  out.worker_overhead = RecordedOverhead(out);
}

absl::Status MeasureSolo(KernelRun& run, double warm_ns, KernelMeasurement& out) {
  run.BeginStage(kSoloEnd);
  const int batch = run.BatchFor(warm_ns);
  std::vector<double> original;
  std::vector<double> workers;
  std::vector<double> ratios;
  while (run.TakeMore(original.size())) {
    GPUSHARE_RETURN_IF_ERROR(run.timer.CheckCancelled());
    GPUSHARE_ASSIGN_OR_RETURN(const double grid, run.timer.TimePerLaunch(run.Ordinary(), batch));
    original.push_back(grid);
    if (!run.evictable()) continue;
    GPUSHARE_ASSIGN_OR_RETURN(const double each, run.timer.TimePerLaunch(run.Workers(), batch));
    workers.push_back(each);
    ratios.push_back(each / grid);
  }
  run.Sample(run.SoloRow(run.Ordinary(), original));
  AddSoloSize(out.block_tasks, original, out);
  if (!workers.empty()) run.Sample(run.SoloRow(run.Workers(), workers));
  out.worker_solo_ns = std::llround(Median(workers));
  out.solo_ns = std::llround(Median(original));
  SetOverhead(run, ratios, out);
  return absl::OkStatus();
}

// Without workers there are no exact times. A few rounds end together, each as long as its block
// tasks; of many rounds the last counts by how full it is.
int64_t BlockTaskOfGrid(const KernelRun& run, int64_t solo_ns) {
  const double rounds =
      static_cast<double>(run.item.block_tasks) / static_cast<double>(run.round());
  const double whole = rounds < kRoundsForSlope ? std::ceil(rounds) : rounds;
  return std::llround(static_cast<double>(solo_ns) / std::max(1.0, whole));
}

// A tail of the last round that is longer than a launch ramp comes from block tasks of unequal
// length: it is the largest of as many draws as there are workers.
void SetSpread(const KernelRun& run, double tail_ns, double block_task_ns, KernelMeasurement& out) {
  if (!(tail_ns > kRampNs && tail_ns > kSpreadSeen * block_task_ns)) return;
  const double largest = ExpectedMaximum(static_cast<double>(run.round()));
  out.block_task_spread = std::min(1.0, tail_ns / block_task_ns / largest);
}

// Worker launches of whole rounds have no tail and exact times. With many rounds the block task is
// the slope between all and half of them, which is free of the launch ramp and runs on as cold a
// cache as the whole task.
absl::Status BlockTaskOfWorkers(KernelRun& run, KernelMeasurement& out) {
  const int64_t rounds = run.item.block_tasks / run.round();
  const int64_t half = rounds / 2;
  const int64_t most = rounds >= 1 ? rounds * run.round() : run.item.block_tasks;
  std::vector<double> tasks;
  std::vector<double> tails;
  double whole = 0;
  size_t dropped = 0;
  while (run.TakeMore(tasks.size()) && dropped < kTimingTriesMax) {
    GPUSHARE_RETURN_IF_ERROR(run.timer.CheckCancelled());
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch all, run.timer.RunOne(run.Workers(most)));
    whole = all.duration_ns() / static_cast<double>(std::max<int64_t>(1, rounds));
    if (rounds < kRoundsForSlope) {
      tasks.push_back(whole);
      continue;
    }
    GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch part,
                              run.timer.RunOne(run.Workers(half * run.round())));
    const double each =
        (all.duration_ns() - part.duration_ns()) / static_cast<double>(rounds - half);
    if (each < 1) {
      ++dropped;
      continue;
    }
    tasks.push_back(each);
    tails.push_back(all.duration_ns() - each * static_cast<double>(rounds));
  }
  run.NoteImpossible(dropped, "samples of its block task, below 1 ns,");
  if (tasks.empty()) tasks.push_back(std::max(1.0, whole));
  const double with_overhead = Median(tasks);
  out.block_task_ns = std::llround(with_overhead / (1 + RecordedOverhead(out)));
  SetSpread(run, Median(tails), with_overhead, out);
  return absl::OkStatus();
}

absl::Status MeasureBlockTask(KernelRun& run, KernelMeasurement& out) {
  run.BeginStage(kBlockTaskEnd);
  if (out.kind == core::TaskKind::kLibrary) out.block_task_ns = out.solo_ns;
  if (!run.item.has_block_tasks()) return absl::OkStatus();
  if (run.item.block_tasks < run.round()) {
    run.notes.push_back(
        absl::StrCat("Kernel '", out.name, "' has ", run.item.block_tasks,
                     " block tasks in its sample, and a full round of the device has ", run.round(),
                     ": its block task is that of a part-filled SM."));
  }
  if (run.evictable()) return BlockTaskOfWorkers(run, out);
  out.block_task_ns = BlockTaskOfGrid(run, out.solo_ns);
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureDurations(KernelRun& run, KernelMeasurement& out) {
  GPUSHARE_ASSIGN_OR_RETURN(const double warm_ns, WarmUp(run));
  GPUSHARE_RETURN_IF_ERROR(MeasureSolo(run, warm_ns, out));
  return MeasureBlockTask(run, out);
}

}  // namespace gpushare::models
