// The whole calibration: preparation, stages, checkpoints, and the profile made of it. See
// calibration.h.

#include "src/models/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/kernel_check.h"
#include "src/core/lanes.h"
#include "src/core/limits.h"
#include "src/models/calibration_checkpoint.h"
#include "src/models/calibration_device.h"
#include "src/models/calibration_kernel.h"
#include "src/models/calibration_pair.h"
#include "src/models/calibration_timing.h"
#include "src/models/online_model.h"

namespace gpushare::models {
namespace {

// A graph whose nodes add up to the measured time but for this much keeps them as they are.
constexpr double kNodesAgree = 0.02;
// A measured speed counts as so many queries: what is seen later moves it slowly.
constexpr int kPairSamples = 16;
// What SimulationRecord may hold; a device that exceeds it is measured wrong.
constexpr double kSpeedMax = 10;

absl::Status CheckOptions(const CalibrationOptions& options) {
  if (options.repeats < 1 || options.repeats > kCalibrationRepeatsMax) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration repeats ", options.repeats,
                                                   " times, and 1 to ", kCalibrationRepeatsMax,
                                                   " are allowed."));
  }
  if (options.evictions < 1 || options.evictions > kEvictionSamplesMax) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration asks for ", options.evictions,
                                                   " evictions, and 1 to ", kEvictionSamplesMax,
                                                   " are allowed."));
  }
  if (!(options.seconds_per_kernel > 0 && options.seconds_per_kernel <= 3600)) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration gives each kernel ",
                                                   options.seconds_per_kernel,
                                                   " s, and it must be above 0, at most 3600."));
  }
  if (options.hang_limit_ns <= 0 || options.hang_limit_ns > core::kMaxDurationNs) {
    return absl::InvalidArgumentError(absl::StrCat("The hang limit is ", options.hang_limit_ns,
                                                   " ns, and it must be above 0, at most ",
                                                   core::kMaxDurationNs, " ns."));
  }
  if (options.buffers.bytes < 0 || options.buffers.bytes > core::kMaxCopyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("The copy buffers have ", options.buffers.bytes,
                                                   " bytes, and 0 to ", core::kMaxCopyBytes,
                                                   " are allowed."));
  }
  return absl::OkStatus();
}

absl::Status CheckItems(absl::Span<const CalibrationItem> items) {
  if (items.empty() || items.size() > static_cast<size_t>(core::kMaxKernels)) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration has ", items.size(),
                                                   " kernels, and 1 to ", core::kMaxKernels,
                                                   " are allowed."));
  }
  std::set<std::string> names;
  for (const CalibrationItem& item : items) {
    if (!names.insert(item.kernel.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Kernel '", item.kernel.name, "' stands twice in the calibration."));
    }
    const bool kernel = item.kernel.kind == core::TaskKind::kKernel;
    if (kernel && (item.block_tasks < 1 || item.block_tasks > core::kMaxBlockTasks)) {
      return absl::InvalidArgumentError(
          absl::StrCat("The sample of kernel '", item.kernel.name, "' has ", item.block_tasks,
                       " block tasks, and the limits are 1 and ", core::kMaxBlockTasks, "."));
    }
    if (item.arguments.size() > core::kMaxArgumentBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("The sample of kernel '", item.kernel.name, "' has ", item.arguments.size(),
                       " bytes of arguments, and the most is ", core::kMaxArgumentBytes, "."));
    }
  }
  return absl::OkStatus();
}

// The nodes of a graph, scaled to the measured time; without any, one node of that time.
void FillNodes(const KernelMeasurement& measured, int32_t sm_count,
               core::SimulationRecord& record) {
  double total = 0;
  for (const core::GraphNode& node : record.nodes) {
    total += static_cast<double>(node.duration_ns + record.node_gap_ns) * node.repeat;
  }
  const double solo = static_cast<double>(measured.solo_ns);
  if (total <= 0) {
    record.nodes = {core::GraphNode{}};
    record.nodes[0].duration_ns = measured.solo_ns;
    record.nodes[0].blocks = sm_count;
    return;
  }
  const double factor = solo / total;
  if (std::abs(factor - 1) <= kNodesAgree) return;
  for (core::GraphNode& node : record.nodes) {
    const double scaled = std::round(static_cast<double>(node.duration_ns) * factor);
    node.duration_ns = std::max<int64_t>(1, static_cast<int64_t>(scaled));
  }
}

// The item's description with what was measured in place of what was given.
core::KernelDesc Describe(const core::KernelDesc& given, const KernelMeasurement& measured,
                          const core::DeviceProfile& device) {
  core::KernelDesc kernel = given;
  // Native handles mean nothing in another process.
  kernel.id = core::KernelId();
  kernel.original_function = nullptr;
  kernel.worker_function = nullptr;
  kernel.capture = nullptr;
  kernel.capture_user = nullptr;
  kernel.graph = nullptr;
  kernel.graph_exec = nullptr;
  kernel.workers_per_sm_max = measured.workers_per_sm;
  // A kernel's duration follows from its block tasks, of which a task may have any number.
  if (measured.kind != core::TaskKind::kKernel) kernel.solo_hint_ns = measured.solo_ns;
  core::SimulationRecord& record = kernel.simulation;
  record.present = true;
  if (measured.kind == core::TaskKind::kGraph) FillNodes(measured, device.sm_count, record);
  if (measured.kind != core::TaskKind::kGraph) record.block_task_ns = measured.block_task_ns;
  record.block_task_spread = measured.block_task_spread;
  record.worker_overhead = RecordedOverhead(measured);
  record.saturating_occupancy = measured.saturating_occupancy;
  record.speed = measured.speed;
  for (core::SpeedPoint& point : record.speed) {
    point.speed = std::clamp(point.speed, 1e-6, kSpeedMax);
  }
  return kernel;
}

void LearnPair(const PairMeasurement& pair, const core::KernelDesc& lc, const core::KernelDesc& be,
               int32_t sm_count, core::CostModel& model) {
  core::CoResident beside;
  beside.kernel = &be;
  core::Observation seen;
  seen.features.kernel = &lc;
  seen.features.kind = lc.kind;
  seen.beside = absl::MakeConstSpan(&beside, 1);
  const int64_t solo_ns = model.PredictSolo(seen.features).duration_ns;
  for (const PairMeasurement::Speed& speed : pair.speeds) {
    seen.sms = speed.lc_sms;
    beside.sms = 1;  // how many does not matter: the other side of the split
    seen.measured_ns = std::llround(static_cast<double>(solo_ns) / speed.beside);
    for (int i = 0; i < kPairSamples; ++i) model.Observe(seen);
  }
  beside.same_sms = true;
  beside.sms = 0;
  for (const int64_t added_ns : pair.blocking_ns) {
    seen.sms = sm_count;
    seen.measured_ns = solo_ns + added_ns;
    model.Observe(seen);
  }
}

// What a cost model learns from the measurements, so that the first predictions are trained.
std::string Learn(const Profile& profile, absl::Span<const KernelMeasurement> measured,
                  absl::Span<const PairMeasurement> pairs) {
  std::vector<core::KernelDesc> kernels;
  kernels.reserve(measured.size());  // observed by address
  std::unique_ptr<core::CostModel> model = MakeOnlineModel(profile.device);
  for (const KernelMeasurement& one : measured) {
    kernels.push_back(*profile.FindKernel(one.name));
    core::KernelDesc& kernel = kernels.back();
    kernel.id = core::KernelId{static_cast<uint32_t>(kernels.size())};
    model->AddKernel(kernel);
    core::Observation seen;
    seen.features.kernel = &kernel;
    seen.features.kind = kernel.kind;
    seen.features.block_tasks = one.block_tasks;
    seen.sms = profile.device.sm_count;
    seen.measured_ns = one.solo_ns;
    // Of what will be seen again as single queries, a query's duration.
    for (const PairMeasurement& pair : pairs) {
      if (pair.lc == one.name && pair.query_ns > 0) seen.measured_ns = pair.query_ns;
    }
    model->Observe(seen);
    seen.evicted = true;
    seen.form = core::Form::kWorkers;
    for (const int64_t sample : one.eviction_ns) {
      seen.measured_ns = sample;
      model->Observe(seen);
    }
  }
  const auto find = [&](const std::string& name) {
    return std::find_if(kernels.begin(), kernels.end(),
                        [&](const core::KernelDesc& kernel) { return kernel.name == name; });
  };
  for (const PairMeasurement& pair : pairs) {
    LearnPair(pair, *find(pair.lc), *find(pair.be), profile.device.sm_count, *model);
  }
  return model->Save();
}

class Calibration {
 public:
  Calibration(core::Device& device, const Profile& base, const CalibrationOptions& options)
      : device_(device), base_(base), options_(options), timer_(device, options) {}

  absl::StatusOr<CalibrationResult> Run(absl::Span<const CalibrationItem> items) {
    absl::Status status = Prepare(items);
    if (status.ok()) status = Resume();
    if (status.ok()) status = MeasureDevice();
    for (size_t i = 0; status.ok() && i < items_.size(); ++i) status = MeasureKernel(i);
    if (status.ok()) status = MeasurePairs();
    if (!status.ok()) {
      timer_.Drain();
      return status;
    }
    return Complete();
  }

 private:
  // Places and lanes first: a graph is instantiated for every place there is.
  absl::Status Prepare(absl::Span<const CalibrationItem> items) {
    if (absl::Status status = lanes_.Create(device_, core::kMaxSplits); !status.ok()) {
      return status;
    }
    items_.assign(items.begin(), items.end());
    uint32_t id = 1;
    for (CalibrationItem& item : items_) {
      item.kernel.id = core::KernelId{id++};
      if (!device_.capabilities().eviction) item.kernel.evictable = false;
      if (item.kernel.kind != core::TaskKind::kKernel) item.kernel.evictable = false;
      if (absl::Status status = device_.DescribeKernel(item.kernel); !status.ok()) return status;
      core::FillUnknown(item.kernel);
      if (absl::Status status = core::CheckKernel(item.kernel); !status.ok()) return status;
      if (absl::Status status = device_.PrepareKernel(item.kernel); !status.ok()) return status;
    }
    checkpoint_.device = device_.capabilities().profile;
    return absl::OkStatus();
  }

  absl::Status Resume() {
    if (!options_.resume || options_.output_path.empty()) return absl::OkStatus();
    absl::StatusOr<Checkpoint> found = LoadCheckpoint(CheckpointPath(options_.output_path));
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    if (!found.ok()) return found.status();
    const core::DeviceProfile& own = device_.capabilities().profile;
    if (found->device.gpu_model != own.gpu_model || found->device.sm_count != own.sm_count) {
      return absl::FailedPreconditionError(
          absl::StrCat("The checkpoint '", CheckpointPath(options_.output_path), "' is of '",
                       found->device.gpu_model, "' with ", found->device.sm_count,
                       " SMs, and this device is '", own.gpu_model, "' with ", own.sm_count, "."));
    }
    checkpoint_ = *std::move(found);
    return absl::OkStatus();
  }

  absl::Status Keep() {
    if (options_.output_path.empty()) return absl::OkStatus();
    return SaveCheckpoint(CheckpointPath(options_.output_path), checkpoint_);
  }

  void Report(const std::string& what, const KernelMeasurement* kernel, bool kept = false) {
    if (!options_.progress) return;
    CalibrationProgress progress;
    progress.done = done_;
    progress.total = static_cast<int32_t>(items_.size()) + 1;
    progress.what = what;
    progress.kernel = kernel;
    progress.kept = kept;
    options_.progress(progress);
  }

  absl::Status MeasureDevice() {
    Report("device", nullptr);
    if (!checkpoint_.device_measured) {
      DeviceMeter meter(timer_, lanes_, items_, options_, result_.notes);
      absl::StatusOr<core::DeviceProfile> measured = meter.Measure();
      if (!measured.ok()) return measured.status();
      checkpoint_.device = *std::move(measured);
      checkpoint_.device_measured = true;
      if (absl::Status status = Keep(); !status.ok()) return status;
    }
    ++done_;
    Report("device", nullptr);
    return absl::OkStatus();
  }

  absl::Status MeasureKernel(size_t index) {
    const CalibrationItem& item = items_[index];
    const uint64_t digest = DigestOf(item, device_.capabilities().profile);
    const auto known = checkpoint_.kernels.find(digest);
    const bool kept = known != checkpoint_.kernels.end();
    if (kept) {
      result_.kernels.push_back(known->second);
      ++result_.kept;
    } else {
      Report(item.kernel.name, nullptr);
      KernelMeter meter(timer_, lanes_, item, options_, result_.notes);
      absl::StatusOr<KernelMeasurement> measured = meter.Measure();
      if (!measured.ok()) return measured.status();
      checkpoint_.kernels[digest] = *measured;
      result_.kernels.push_back(*std::move(measured));
      if (absl::Status status = Keep(); !status.ok()) return status;
    }
    ++done_;
    Report(item.kernel.name, &result_.kernels.back(), kept);
    return absl::OkStatus();
  }

  // Seconds in all: not in the checkpoint.
  absl::Status MeasurePairs() {
    if (!device_.capabilities().partitions || !device_.capabilities().eviction) {
      return absl::OkStatus();
    }
    PairMeter meter(timer_, lanes_, options_);
    for (size_t lc = 0; lc < items_.size(); ++lc) {
      if (items_[lc].kernel.kind == core::TaskKind::kKernel || result_.kernels[lc].speed.empty()) {
        continue;
      }
      for (size_t be = 0; be < items_.size(); ++be) {
        if (!items_[be].kernel.evictable) continue;
        CalibrationItem background = items_[be];
        background.kernel.simulation.block_task_ns = result_.kernels[be].block_task_ns;
        absl::StatusOr<PairMeasurement> pair =
            meter.Measure(items_[lc], result_.kernels[lc], background);
        if (!pair.ok()) return pair.status();
        result_.pairs.push_back(*std::move(pair));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CalibrationResult> Complete() {
    Profile& profile = result_.profile;
    profile.device = checkpoint_.device;
    for (size_t i = 0; i < items_.size(); ++i) {
      profile.kernels.push_back(Describe(items_[i].kernel, result_.kernels[i], checkpoint_.device));
    }
    // A profile is of one GPU: records of another are not carried over.
    if (base_.device.gpu_model == profile.device.gpu_model) {
      for (const core::KernelDesc& kernel : base_.kernels) {
        if (profile.FindKernel(kernel.name) == nullptr) profile.kernels.push_back(kernel);
      }
    }
    profile.learned = Learn(profile, result_.kernels, result_.pairs);
    if (options_.output_path.empty()) return std::move(result_);
    if (absl::Status status = SaveProfile(options_.output_path, profile); !status.ok()) {
      return status;
    }
    std::remove(CheckpointPath(options_.output_path).c_str());
    return std::move(result_);
  }

  core::Device& device_;
  const Profile& base_;
  const CalibrationOptions& options_;
  LaunchTimer timer_;
  core::Lanes lanes_;
  std::vector<CalibrationItem> items_;
  Checkpoint checkpoint_;
  CalibrationResult result_;
  int32_t done_ = 0;
};

}  // namespace

std::string CheckpointPath(const std::string& output_path) { return output_path + ".partial"; }

absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  if (absl::Status status = CheckItems(items); !status.ok()) return status;
  return std::make_unique<Calibration>(device, base, options)->Run(items);
}

}  // namespace gpushare::models
