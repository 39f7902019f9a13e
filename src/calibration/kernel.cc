// Durations, block tasks, occupancy and slice of one kernel. See calibration_kernel.h; the formulas
// are those of docs/calibration.md.

#include "src/calibration/kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/curves.h"
#include "src/calibration/slice.h"
#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

// Each stage ends when this share of the kernel's time is spent; the occupancy's at
// kOccupancyEnd.
constexpr double kSoloEnd = 0.15;
constexpr double kBlockTaskEnd = 0.3;
// Of what comes later, when all kernels have their durations.
constexpr double kSliceEnd = 0.1;
// Of one value, however little time there is.
constexpr size_t kSamplesLeast = 3;

// A batch lasts about so long: a jitter of 1 us of the host is then below 0.1 %.
constexpr double kBatchNs = 2e6;
// Below so many rounds the launch ramp and the tail cannot be told from the block task.
constexpr int64_t kRoundsForSlope = 4;
// A tail shorter than this is the launch ramp, not the spread of block tasks.
constexpr double kRampNs = 3000;
constexpr double kSpreadSeen = 0.03;
constexpr int32_t kOccupancyPoints = 8;
constexpr int kOccupancyRepeats = 3;
// Fewer workers that lose no more than this are enough: what two measurements differ by.
constexpr double kWorkersLoss = 0.01;
constexpr int kSliceRepeats = 3;

}  // namespace

double RecordedOverhead(const KernelMeasurement& measured) {
  return std::clamp(measured.worker_overhead, core::kMinWorkerOverhead, core::kMaxWorkerOverhead);
}

core::Form OrdinaryForm(const core::KernelDesc& kernel) {
  switch (kernel.kind) {
    case core::TaskKind::kGraph:
      return core::Form::kGraph;
    case core::TaskKind::kLibrary:
      return core::Form::kLibrary;
    default:
      return core::Form::kOriginal;
  }
}

int32_t WorkersPerSm(const core::KernelDesc& kernel, const core::DeviceProfile& device) {
  int64_t most = std::min(kernel.workers_per_sm_max, device.blocks_per_sm);
  const int64_t threads = std::max(1, kernel.threads_per_block);
  most = std::min<int64_t>(most, device.threads_per_sm / threads);
  const int64_t registers = threads * kernel.registers_per_thread;
  if (registers > 0) most = std::min<int64_t>(most, device.registers_per_sm / registers);
  if (kernel.shared_memory_bytes > 0) {
    most = std::min<int64_t>(most, device.shared_memory_per_sm_bytes / kernel.shared_memory_bytes);
  }
  return static_cast<int32_t>(std::max<int64_t>(1, most));
}

core::LaunchRequest TaskRequest(const CalibrationItem& item, core::Form form,
                                core::LaneIndex lane) {
  core::LaunchRequest request;
  request.parts[0].lane = lane;
  request.form = form;
  request.parts[0].work.kernel = &item.kernel;
  request.parts[0].block_count = item.kernel.kind == core::TaskKind::kKernel ? item.block_tasks : 0;
  // A launch of fewer block tasks is a part of the same grid.
  const bool kernel = item.kernel.kind == core::TaskKind::kKernel;
  const bool fits = item.block_tasks <= std::numeric_limits<int32_t>::max();
  request.parts[0].work.grid[0] =
      kernel && fits && item.grid_x == 0 ? static_cast<int32_t>(item.block_tasks) : item.grid_x;
  request.parts[0].work.grid[1] = item.grid_y;
  request.parts[0].work.grid[2] = item.grid_z;
  request.parts[0].work.arguments = item.arguments.empty() ? nullptr : item.arguments.data();
  request.parts[0].work.arguments_bytes = static_cast<uint32_t>(item.arguments.size());
  if (form == core::Form::kWorkers) {
    request.parts[0].counter = 0;
    request.parts[0].reset_counter = true;
  }
  return request;
}

KernelMeter::KernelMeter(LaunchTimer& timer, const core::Lanes& lanes, const CalibrationItem& item,
                         const CalibrationOptions& options, std::vector<std::string>& notes)
    : timer_(timer),
      lanes_(lanes),
      item_(item),
      options_(options),
      notes_(notes),
      sm_count_(timer.device().capabilities().profile.sm_count),
      random_(options.seed) {
  plain_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kLc, 0);
  worker_lane_ = lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0);
}

void KernelMeter::BeginStage(double share_end) {
  stage_end_ns_ =
      begun_ns_ + static_cast<core::TimeNs>(options_.seconds_per_kernel * 1e9 * share_end);
}

bool KernelMeter::TimeLeft() const { return timer_.device().NowNs() < stage_end_ns_; }

core::LaunchRequest KernelMeter::Workers(int64_t block_tasks, int32_t workers) const {
  core::LaunchRequest request = TaskRequest(item_, core::Form::kWorkers, worker_lane_);
  request.parts[0].block_count = block_tasks;
  request.workers = workers;
  return request;
}

int KernelMeter::BatchFor(double duration_ns) const {
  return static_cast<int>(
      std::clamp(1 + std::ceil(Ratio(kBatchNs, duration_ns)), 2.0, static_cast<double>(kBatchMax)));
}

bool KernelMeter::MoreSamples(size_t taken) const {
  const auto most = static_cast<size_t>(options_.repeats);
  return taken < most && (taken < kSamplesLeast || TimeLeft());
}

void KernelMeter::NoteDropped(int count, const std::string& what) {
  if (count == 0) return;
  notes_.push_back(absl::StrCat("Kernel '", item_.kernel.name, "': ", count, " impossible ", what,
                                " were dropped."));
}

absl::StatusOr<KernelMeasurement> KernelMeter::MeasureBasics() {
  out_.name = item_.kernel.name;
  out_.kind = item_.kernel.kind;
  out_.block_tasks = item_.kernel.kind == core::TaskKind::kKernel ? item_.block_tasks : 0;
  out_.workers_per_sm = WorkersPerSm(item_.kernel, timer_.device().capabilities().profile);
  return Run({&KernelMeter::WarmUp, &KernelMeter::MeasureSolo, &KernelMeter::MeasureBlockTask,
              &KernelMeter::MeasureOccupancy, &KernelMeter::MeasureSpeed});
}

absl::StatusOr<KernelMeasurement> KernelMeter::MeasureRest(const KernelMeasurement& basics) {
  out_ = basics;
  absl::StatusOr<KernelMeasurement> whole =
      Run({&KernelMeter::MeasureSlice, &KernelMeter::MeasureEvictions});
  if (whole.ok()) whole->rest_measured = true;
  return whole;
}

absl::StatusOr<KernelMeasurement> KernelMeter::Run(absl::Span<const Stage> stages) {
  begun_ns_ = timer_.device().NowNs();
  for (const Stage stage : stages) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    if (absl::Status status = (this->*stage)(); !status.ok()) return status;
  }
  out_.spent_ns += timer_.device().NowNs() - begun_ns_;
  return std::move(out_);
}

absl::Status KernelMeter::WarmUp() {
  // Modules, caches and clocks: the first launch of each form counts nowhere.
  for (int i = 0; i < 2; ++i) {
    for (const core::Form form : {OrdinaryForm(item_.kernel), core::Form::kWorkers}) {
      if (form == core::Form::kWorkers && !evictable()) continue;
      const auto lane = form == core::Form::kWorkers ? worker_lane_ : plain_lane_;
      absl::StatusOr<TimedLaunch> one = timer_.RunOne(TaskRequest(item_, form, lane));
      if (!one.ok()) return one.status();
      first_ns_ = static_cast<double>(one->seen_ns - one->called_ns);
    }
  }
  return absl::OkStatus();
}

absl::Status KernelMeter::MeasureSolo() {
  BeginStage(kSoloEnd);
  const int batch = BatchFor(first_ns_);
  std::vector<double> original;
  std::vector<double> workers;
  std::vector<double> ratios;
  while (MoreSamples(original.size())) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    absl::StatusOr<double> grid =
        timer_.TimePerLaunch(TaskRequest(item_, OrdinaryForm(item_.kernel), plain_lane_), batch);
    if (!grid.ok()) return grid.status();
    original.push_back(*grid);
    if (!evictable()) continue;
    absl::StatusOr<double> each = timer_.TimePerLaunch(Workers(item_.block_tasks, 0), batch);
    if (!each.ok()) return each.status();
    workers.push_back(*each);
    ratios.push_back(*each / *grid);
  }
  out_.worker_solo_ns = std::llround(Median(workers));
  out_.solo_ns = std::llround(Median(original));
  SetOverhead(ratios);
  return absl::OkStatus();
}

// Of the pairs that a profile could hold. Where none is, all of them say the same: the nearest
// overhead that it holds.
void KernelMeter::SetOverhead(absl::Span<const double> ratios) {
  if (ratios.empty()) return;
  std::vector<double> possible;
  for (const double ratio : ratios) {
    const double overhead = ratio - 1;
    if (overhead < core::kMinWorkerOverhead || overhead > core::kMaxWorkerOverhead) continue;
    possible.push_back(overhead);
  }
  NoteDropped(static_cast<int>(ratios.size() - possible.size()),
              absl::StrCat("samples of the PTB overhead, outside of ", core::kMinWorkerOverhead,
                           " to ", core::kMaxWorkerOverhead, ","));
  if (possible.empty()) possible.push_back(Median({ratios.begin(), ratios.end()}) - 1);
  out_.worker_overhead = Median(std::move(possible));
  out_.worker_overhead = RecordedOverhead(out_);
}

absl::Status KernelMeter::MeasureBlockTask() {
  BeginStage(kBlockTaskEnd);
  if (out_.kind == core::TaskKind::kLibrary) out_.block_task_ns = out_.solo_ns;
  if (out_.kind != core::TaskKind::kKernel) return absl::OkStatus();
  if (item_.block_tasks < round()) {
    notes_.push_back(absl::StrCat("Kernel '", out_.name, "' has ", item_.block_tasks,
                                  " block tasks in its sample, and a full round of the device has ",
                                  round(), ": its block task is that of a part-filled SM."));
  }
  if (evictable()) return BlockTaskOfWorkers();
  const double rounds = static_cast<double>(item_.block_tasks) / static_cast<double>(round());
  // Few rounds end together, each as long as its block tasks; of many, the tail is one part.
  const double whole = rounds < kRoundsForSlope ? std::ceil(rounds) : rounds;
  out_.block_task_ns = std::llround(static_cast<double>(out_.solo_ns) / std::max(1.0, whole));
  return absl::OkStatus();
}

// Worker launches of whole rounds: no tail, exact times. From many rounds the slope between all and
// half of them, which is free of the launch ramp and runs on as cold a cache as the whole task.
absl::Status KernelMeter::BlockTaskOfWorkers() {
  const int64_t rounds = item_.block_tasks / round();
  const bool slope = rounds >= kRoundsForSlope;
  const int64_t half = rounds / 2;
  std::vector<double> tasks;
  std::vector<double> tails;
  double whole = 0;
  int dropped = 0;
  while (MoreSamples(tasks.size()) && dropped < kTimingTriesMax) {
    if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
    const int64_t most = rounds >= 1 ? rounds * round() : item_.block_tasks;
    absl::StatusOr<TimedLaunch> all = timer_.RunOne(Workers(most, 0));
    if (!all.ok()) return all.status();
    whole = all->duration_ns() / static_cast<double>(std::max<int64_t>(1, rounds));
    if (!slope) {
      tasks.push_back(whole);
      continue;
    }
    absl::StatusOr<TimedLaunch> part = timer_.RunOne(Workers(half * round(), 0));
    if (!part.ok()) return part.status();
    const double each =
        (all->duration_ns() - part->duration_ns()) / static_cast<double>(rounds - half);
    if (each < 1) {
      ++dropped;
      continue;
    }
    tasks.push_back(each);
    tails.push_back(all->duration_ns() - each * static_cast<double>(rounds));
  }
  NoteDropped(dropped, "samples of its block task, below 1 ns,");
  if (tasks.empty()) tasks.push_back(std::max(1.0, whole));
  const double with_overhead = Median(tasks);
  out_.block_task_ns = std::llround(with_overhead / (1 + RecordedOverhead(out_)));
  const double tail = Median(tails);
  if (tail > kRampNs && tail > kSpreadSeen * with_overhead) {
    const double largest = ExpectedMaximum(static_cast<double>(round()));
    out_.block_task_spread = std::min(1.0, tail / with_overhead / largest);
  }
  return absl::OkStatus();
}

absl::Status KernelMeter::MeasureOccupancy() {
  BeginStage(kOccupancyEnd);
  const int32_t most = out_.workers_per_sm;
  if (!evictable() || most < 2 || item_.block_tasks < round()) return absl::OkStatus();
  const int32_t step = (most + kOccupancyPoints - 1) / kOccupancyPoints;
  std::vector<std::vector<double>> samples(static_cast<size_t>(most));
  for (int i = 0; i < std::min(options_.repeats, kOccupancyRepeats) && (i == 0 || TimeLeft());
       ++i) {
    absl::StatusOr<TimedLaunch> full = timer_.RunOne(Workers(item_.block_tasks, 0));
    if (!full.ok()) return full.status();
    for (int32_t workers = most - step; workers >= 1; workers -= step) {
      if (absl::Status status = timer_.CheckCancelled(); !status.ok()) return status;
      absl::StatusOr<TimedLaunch> some =
          timer_.RunOne(Workers(item_.block_tasks, workers * sm_count_));
      if (!some.ok()) return some.status();
      samples[static_cast<size_t>(workers) - 1].push_back(
          Ratio(full->duration_ns(), some->duration_ns()));
    }
  }
  std::vector<double> speeds(samples.size(), 0.0);
  for (size_t w = 0; w < samples.size(); ++w) speeds[w] = Median(samples[w]);
  speeds.back() = 1;
  out_.saturating_occupancy = FitSaturatingOccupancy(speeds);
  out_.workers_per_sm_least = FewestWorkers(speeds, kWorkersLoss);
  return absl::OkStatus();
}

// Only of a kernel whose block tasks may be launched in any parts: the others have no slices.
absl::Status KernelMeter::MeasureSlice() {
  BeginStage(kSliceEnd);
  if (!evictable() || item_.block_tasks < round()) return absl::OkStatus();
  SliceOptions options;
  options.lane = plain_lane_;
  options.overhead_max = options_.slice_overhead_max;
  options.repeats = std::min(options_.repeats, kSliceRepeats);
  options.time_left = [this] { return TimeLeft(); };
  absl::StatusOr<SliceChoice> choice = FindSmallestSlice(timer_, item_, options);
  if (!choice.ok()) return choice.status();
  NoteDropped(choice->dropped, "samples of the overhead of slices");
  out_.slice_block_tasks = choice->block_tasks;
  out_.slice_overhead = choice->overhead;
  return absl::OkStatus();
}

}  // namespace gpushare::models
