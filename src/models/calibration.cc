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
#include "src/models/calibration_co_resident.h"
#include "src/models/calibration_device.h"
#include "src/models/calibration_fused.h"
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
// A week: longer is a unit error.
constexpr double kSecondsTotalMax = 7 * 24 * 3600;
// What a kernel gets however little time there is in all.
constexpr double kSecondsLeast = 0.01;
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

absl::Status CheckBounds(const CalibrationOptions& options) {
  if (!(options.seconds_total >= 0 && options.seconds_total <= kSecondsTotalMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The calibration has ", options.seconds_total,
        " s in all, and it must lie between 0 (no bound) and ", kSecondsTotalMax, "."));
  }
  if (!(options.slice_overhead_max > 0 && options.slice_overhead_max <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("A slice may cost ", options.slice_overhead_max,
                                                   " of a kernel's time, and it must be above 0, "
                                                   "at most 1."));
  }
  return absl::OkStatus();
}

absl::Status CheckFused(absl::Span<const CalibrationItem> items,
                        absl::Span<const CalibrationFused> all) {
  if (all.size() > kCalibrationFusedMax) {
    return absl::InvalidArgumentError(absl::StrCat("The calibration has ", all.size(),
                                                   " fused kernels, and the most is ",
                                                   kCalibrationFusedMax, "."));
  }
  std::set<std::string> names;
  for (const CalibrationFused& fused : all) {
    const std::string& name = fused.kernel.name;
    if (name.empty() || !names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Fused kernel '", name, "' stands twice in the calibration, or has no name."));
    }
    for (const size_t index : {fused.tensor_item, fused.cuda_item}) {
      if (index >= items.size()) {
        return absl::InvalidArgumentError(absl::StrCat("A part of fused kernel '", name,
                                                       "' is item ", index, ", and there are ",
                                                       items.size(), "."));
      }
      if (items[index].kernel.kind != core::TaskKind::kKernel) {
        return absl::InvalidArgumentError(absl::StrCat("The part '", items[index].kernel.name,
                                                       "' of fused kernel '", name,
                                                       "' has no block tasks."));
      }
    }
    if (fused.kernel.tensor_blocks < 1 || fused.kernel.cuda_blocks < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("Fused kernel '", name, "' has ", fused.kernel.tensor_blocks, " and ",
                       fused.kernel.cuda_blocks, " blocks of its parts, and the least is 1."));
    }
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
    if (status.ok()) status = MeasureCoResidents();
    if (status.ok()) status = MeasureFused();
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
    begun_ns_ = device_.NowNs();
    FindPairs();
    return PrepareFused();
  }

  // LC kernels are graphs and library calls, BE kernels evictable ones.
  void FindPairs() {
    if (!device_.capabilities().eviction) return;
    for (size_t first = 0; first < items_.size(); ++first) {
      const bool kernel = items_[first].kernel.kind == core::TaskKind::kKernel;
      if (kernel && !items_[first].kernel.evictable) continue;
      for (size_t second = kernel ? first + 1 : 0; second < items_.size(); ++second) {
        if (!items_[second].kernel.evictable) continue;
        co_residents_.push_back({first, second});
        if (!kernel && device_.capabilities().partitions) pairs_.push_back({first, second});
      }
    }
  }

  absl::Status PrepareFused() {
    fused_ = options_.fused;
    uint32_t id = 1;
    for (CalibrationFused& fused : fused_) {
      if (fused.local_bytes > 0) continue;
      fused.kernel.id = core::KernelId{id++};
      fused.kernel.tensor_part = items_[fused.tensor_item].kernel.id;
      fused.kernel.cuda_part = items_[fused.cuda_item].kernel.id;
      if (absl::Status status = device_.PrepareFusedKernel(fused.kernel); !status.ok()) {
        return status;
      }
    }
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
    progress.total = static_cast<int32_t>(1 + items_.size() + pairs_.size() + co_residents_.size() +
                                          fused_.size());
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
      checkpoint_.record.copies = meter.copies();
      if (absl::Status status = Keep(); !status.ok()) return status;
    }
    ++done_;
    Report("device", nullptr);
    return absl::OkStatus();
  }

  absl::Status MeasureKernel(size_t index) {
    const CalibrationItem& item = items_[index];
    const uint64_t digest = DigestOf(item, device_.capabilities().profile);
    digests_.push_back(digest);
    const auto known = checkpoint_.kernels.find(digest);
    const bool kept = known != checkpoint_.kernels.end();
    if (kept) {
      result_.kernels.push_back(known->second);
      ++result_.kept;
    } else {
      Report(item.kernel.name, nullptr);
      Forget(item.kernel.name);
      CalibrationOptions bounded = options_;
      bounded.seconds_per_kernel = SecondsFor(items_.size() - index);
      KernelMeter meter(timer_, lanes_, item, bounded, result_.notes);
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

  double SecondsLeft() const {
    const auto spent_ns = static_cast<double>(device_.NowNs() - begun_ns_);
    return options_.seconds_total - spent_ns * 1e-9;
  }
  bool TotalIsSpent() const { return options_.seconds_total > 0 && SecondsLeft() <= 0; }

  // Of one kernel: an equal part of what is left in all. Never nothing: a first sample of each
  // value is taken in any case.
  double SecondsFor(size_t kernels_left) const {
    if (options_.seconds_total <= 0) return options_.seconds_per_kernel;
    const double each = SecondsLeft() / static_cast<double>(kernels_left);
    return std::clamp(each, kSecondsLeast, options_.seconds_per_kernel);
  }

  // What the checkpoint has of pairs with a kernel that is measured anew is of another kernel.
  void Forget(const std::string& name) {
    std::erase_if(checkpoint_.record.co_resident, [&](const CoResidentRecord& record) {
      return record.first == name || record.second == name;
    });
    std::erase_if(checkpoint_.record.fused, [&](const FusedRecord& record) {
      return record.tensor == name || record.cuda == name;
    });
  }

  void NoteCut(absl::string_view what, size_t left) {
    result_.notes.push_back(absl::StrCat("The time of ", options_.seconds_total,
                                         " s in all was over before ", left, " ", what,
                                         " were measured."));
    done_ += static_cast<int32_t>(left);
    Report(std::string(what), nullptr);
  }

  // After each measurement of a pair or a fused kernel.
  absl::Status Done(const std::string& what, bool measured) {
    ++done_;
    Report(what, nullptr);
    return measured ? Keep() : absl::OkStatus();
  }

  absl::Status MeasurePairs() {
    PairMeter meter(timer_, lanes_, options_);
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const auto& [lc, be] = pairs_[i];
      const std::pair<uint64_t, uint64_t> digests{digests_[lc], digests_[be]};
      const std::string what = absl::StrCat(items_[lc].kernel.name, " | ", items_[be].kernel.name);
      const auto known = checkpoint_.pairs.find(digests);
      const bool measures = known == checkpoint_.pairs.end() && !result_.kernels[lc].speed.empty();
      if (measures && TotalIsSpent()) {
        NoteCut("pairs on partitions", pairs_.size() - i);
        return absl::OkStatus();
      }
      if (measures) {
        CalibrationItem background = items_[be];
        background.kernel.simulation.block_task_ns = result_.kernels[be].block_task_ns;
        absl::StatusOr<PairMeasurement> pair =
            meter.Measure(items_[lc], result_.kernels[lc], background);
        if (!pair.ok()) return pair.status();
        result_.pairs.push_back(*pair);
        checkpoint_.pairs[digests] = *std::move(pair);
      } else if (known != checkpoint_.pairs.end()) {
        result_.pairs.push_back(known->second);
        result_.pairs.back().lc = items_[lc].kernel.name;
        result_.pairs.back().be = items_[be].kernel.name;
      }
      if (absl::Status status = Done(what, measures); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status MeasureCoResidents() {
    CoResidentMeter meter(timer_, lanes_, options_);
    std::vector<CoResidentRecord>& known = checkpoint_.record.co_resident;
    for (size_t i = 0; i < co_residents_.size(); ++i) {
      const auto& [first, second] = co_residents_[i];
      const std::string& name = items_[first].kernel.name;
      const std::string& other = items_[second].kernel.name;
      const bool measures =
          std::none_of(known.begin(), known.end(), [&](const CoResidentRecord& record) {
            return record.first == name && record.second == other;
          });
      if (measures && TotalIsSpent()) {
        NoteCut("co-resident pairs", co_residents_.size() - i);
        return absl::OkStatus();
      }
      if (measures) {
        absl::StatusOr<CoResidentRecord> record = meter.Measure(
            items_[first], result_.kernels[first], items_[second], result_.kernels[second]);
        if (!record.ok()) return record.status();
        known.push_back(*std::move(record));
      }
      absl::Status status = Done(absl::StrCat(name, " + ", other), measures);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FusedRecord> MeasureOneFused(FusedMeter& meter, const CalibrationFused& fused) {
    const CalibrationItem& tensor = items_[fused.tensor_item];
    const CalibrationItem& cuda = items_[fused.cuda_item];
    if (fused.local_bytes == 0) {
      return meter.Measure(fused.kernel, tensor, result_.kernels[fused.tensor_item], cuda,
                           result_.kernels[fused.cuda_item]);
    }
    FusedRecord record;
    record.name = fused.kernel.name;
    record.tensor = tensor.kernel.name;
    record.cuda = cuda.kernel.name;
    record.tensor_blocks = fused.kernel.tensor_blocks;
    record.cuda_blocks = fused.kernel.cuda_blocks;
    record.verdict = FusedVerdict::kSpills;
    return record;
  }

  absl::Status MeasureFused() {
    FusedMeter meter(timer_, lanes_, options_);
    std::vector<FusedRecord>& known = checkpoint_.record.fused;
    for (size_t i = 0; i < fused_.size(); ++i) {
      const std::string& name = fused_[i].kernel.name;
      const bool measures =
          std::none_of(known.begin(), known.end(),
                       [&](const FusedRecord& record) { return record.name == name; });
      if (measures && TotalIsSpent()) {
        NoteCut("fused kernels", fused_.size() - i);
        break;
      }
      if (measures) {
        absl::StatusOr<FusedRecord> record = MeasureOneFused(meter, fused_[i]);
        if (!record.ok()) return record.status();
        known.push_back(*std::move(record));
      }
      if (absl::Status status = Done(name, measures); !status.ok()) return status;
    }
    JudgeFused(known, result_.notes);
    return absl::OkStatus();
  }

  // Of what is calibrated now, and of what the base has of the same GPU beside it.
  CalibrationRecord Record() const {
    CalibrationRecord record = checkpoint_.record;
    for (const KernelMeasurement& one : result_.kernels) {
      record.kernels.push_back({one.name, one.intensity, one.flat_from_sms, one.slice_block_tasks,
                                one.slice_overhead, one.workers_per_sm_least});
    }
    if (base_.device.gpu_model != checkpoint_.device.gpu_model) return record;
    const auto measured = [&](const std::string& name) {
      return std::any_of(result_.kernels.begin(), result_.kernels.end(),
                         [&](const KernelMeasurement& one) { return one.name == name; });
    };
    const CalibrationRecord& base = base_.calibration;
    for (const KernelRecord& one : base.kernels) {
      if (!measured(one.name)) record.kernels.push_back(one);
    }
    // A pair is of two kernels as they were measured: both old ones, or none.
    for (const CoResidentRecord& one : base.co_resident) {
      if (!measured(one.first) && !measured(one.second)) record.co_resident.push_back(one);
    }
    for (const FusedRecord& one : base.fused) {
      if (!measured(one.tensor) && !measured(one.cuda)) record.fused.push_back(one);
    }
    if (record.copies.empty()) record.copies = base.copies;
    return record;
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
    profile.calibration = Record();
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
  std::vector<uint64_t> digests_;                        // of the items
  std::vector<std::pair<size_t, size_t>> pairs_;         // on the two sides of a split
  std::vector<std::pair<size_t, size_t>> co_residents_;  // on the same SMs
  std::vector<CalibrationFused> fused_;
  core::TimeNs begun_ns_ = 0;
  int32_t done_ = 0;
};

}  // namespace

std::string CheckpointPath(const std::string& output_path) { return output_path + ".partial"; }

absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  if (absl::Status status = CheckBounds(options); !status.ok()) return status;
  if (absl::Status status = CheckItems(items); !status.ok()) return status;
  if (absl::Status status = CheckFused(items, options.fused); !status.ok()) return status;
  return std::make_unique<Calibration>(device, base, options)->Run(items);
}

}  // namespace gpushare::models
