// The whole calibration: preparation, stages, checkpoints. See calibration.h.
//
// A stage is a list of measurements of one kind; each runs until its share of the time is spent.
// Passes over all stages follow each other until nothing is left, or no time.

#include "src/models/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/kernel_check.h"
#include "src/core/lanes.h"
#include "src/core/limits.h"
#include "src/models/calibration_checkpoint.h"
#include "src/models/calibration_checks.h"
#include "src/models/calibration_co_resident.h"
#include "src/models/calibration_device.h"
#include "src/models/calibration_fused.h"
#include "src/models/calibration_kernel.h"
#include "src/models/calibration_pair.h"
#include "src/models/calibration_plan.h"
#include "src/models/calibration_profile.h"
#include "src/models/calibration_timing.h"

namespace gpushare::models {
namespace {

// What a kernel gets however little time there is in all.
constexpr double kSecondsLeast = 0.01;
// Pairs and fused kernels take a fraction of a second each: the checkpoint, which is written whole,
// follows them at most so often.
constexpr core::TimeNs kKeepEveryNs = 1'000'000'000;
// Names in a note on what was not reached.
constexpr size_t kNamesMax = 12;

class Calibration {
 public:
  Calibration(core::Device& device, const Profile& base, const CalibrationOptions& options)
      : device_(device), base_(base), options_(options), timer_(device, options) {}

  absl::StatusOr<CalibrationResult> Run(absl::Span<const CalibrationItem> items) {
    absl::Status status = Prepare(items);
    if (status.ok()) status = Resume();
    if (status.ok()) status = TryCheckpoint();
    if (status.ok()) status = MeasureDevice();
    if (status.ok()) status = MeasureStages();
    if (!status.ok()) {
      timer_.Drain();
      if (unsaved_) Keep().IgnoreError();  // the first error counts
      return status;
    }
    return Complete();
  }

 private:
  // Places and lanes first: a graph is instantiated for every place there is.
  absl::Status Prepare(absl::Span<const CalibrationItem> items) {
    begun_ns_ = device_.NowNs();
    if (absl::Status status = lanes_.Create(device_, core::kMaxSplits); !status.ok()) {
      return status;
    }
    const core::DeviceProfile& own = device_.capabilities().profile;
    items_.assign(items.begin(), items.end());
    uint32_t id = 1;
    for (CalibrationItem& item : items_) {
      item.kernel.id = core::KernelId{id++};
      if (!device_.capabilities().eviction) item.kernel.evictable = false;
      if (item.kernel.kind != core::TaskKind::kKernel) item.kernel.evictable = false;
      if (absl::Status status = device_.DescribeKernel(item.kernel); !status.ok()) return status;
      core::FillUnknown(item.kernel);
      if (absl::Status status = core::CheckKernel(item.kernel); !status.ok()) return status;
      digests_.push_back(DigestOf(item, own));
    }
    FindPairs();
    if (absl::Status status = CheckRecords(); !status.ok()) return status;
    for (CalibrationItem& item : items_) {
      if (absl::Status status = device_.PrepareKernel(item.kernel); !status.ok()) return status;
    }
    checkpoint_.device = own;
    kept_.assign(items_.size(), false);
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

  // That a profile can hold what is asked for: each kernel as it is given, and all of them
  // together.
  absl::Status CheckRecords() {
    const core::DeviceProfile& own = device_.capabilities().profile;
    Profile unmeasured;
    unmeasured.device = own;
    for (const CalibrationItem& item : items_) {
      unmeasured.kernels.push_back(DescribeUnmeasured(item.kernel, own));
      absl::Status status = CheckReadable(own, unmeasured.kernels.back());
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat("No profile can hold the kernel '",
                                                     item.kernel.name, "': ", status.message()));
    }
    if (base_.device.gpu_model == own.gpu_model) {
      for (const core::KernelDesc& kernel : base_.kernels) {
        if (unmeasured.FindKernel(kernel.name) == nullptr) unmeasured.kernels.push_back(kernel);
      }
      unmeasured.calibration = base_.calibration;
    }
    if (unmeasured.kernels.size() > static_cast<size_t>(core::kMaxKernels)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The calibration has ", items_.size(), " kernels, and with those of the base profile ",
          unmeasured.kernels.size(), ", and a profile holds ", core::kMaxKernels, "."));
    }
    size_.kept_bytes = static_cast<int64_t>(FormatProfile(unmeasured).size());
    size_.kernels = static_cast<int64_t>(items_.size());
    size_.pairs = static_cast<int64_t>(pairs_.size());
    size_.co_resident = static_cast<int64_t>(co_residents_.size());
    size_.fused = static_cast<int64_t>(options_.fused.size());
    return CheckSize(size_);
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
    Prune();
    for (size_t i = 0; i < items_.size(); ++i) {
      const KernelMeasurement* const known = KernelOf(i);
      if (known == nullptr) continue;
      // Its line may have been changed.
      kept_[i] = CheckMeasurement(i, *known).ok();
      if (!kept_[i]) checkpoint_.kernels.erase(digests_[i]);
    }
    return absl::OkStatus();
  }

  // Kernels that this calibration does not ask for stay in the checkpoint while there is room.
  void Prune() {
    CalibrationSize size = size_;
    size.kernels += static_cast<int64_t>(checkpoint_.kernels.size());
    size.pairs += static_cast<int64_t>(checkpoint_.pairs.size());
    size.co_resident += static_cast<int64_t>(checkpoint_.record.co_resident.size());
    size.fused += static_cast<int64_t>(checkpoint_.record.fused.size());
    if (CheckSize(size).ok()) return;
    const auto asked = [this](uint64_t digest) {
      return std::find(digests_.begin(), digests_.end(), digest) != digests_.end();
    };
    const auto named = [this](const std::string& name) {
      return std::any_of(items_.begin(), items_.end(),
                         [&](const CalibrationItem& item) { return item.kernel.name == name; });
    };
    std::erase_if(checkpoint_.kernels, [&](const auto& one) { return !asked(one.first); });
    std::erase_if(checkpoint_.pairs, [&](const auto& one) {
      return !asked(one.first.first) || !asked(one.first.second);
    });
    std::erase_if(checkpoint_.record.co_resident, [&](const CoResidentRecord& record) {
      return !named(record.first) || !named(record.second);
    });
    std::erase_if(checkpoint_.record.fused, [&](const FusedRecord& record) {
      return !named(record.tensor) || !named(record.cuda);
    });
  }

  // A folder that cannot be written to is found now, not after the first measurements. Where a
  // checkpoint lies already, somebody could.
  absl::Status TryCheckpoint() {
    std::error_code ignored;
    if (options_.output_path.empty() ||
        std::filesystem::exists(CheckpointPath(options_.output_path), ignored)) {
      return absl::OkStatus();
    }
    return Keep();
  }

  absl::Status Keep() {
    unsaved_ = false;
    saved_ns_ = device_.NowNs();
    if (options_.output_path.empty()) return absl::OkStatus();
    return SaveCheckpoint(CheckpointPath(options_.output_path), checkpoint_);
  }

  void Report(const std::string& what, const KernelMeasurement* kernel, bool kept = false) {
    if (!options_.progress) return;
    CalibrationProgress progress;
    progress.done = done_;
    progress.total = StepsInAll();
    progress.what = what;
    progress.kernel = kernel;
    progress.kept = kept;
    options_.progress(progress);
  }

  int32_t StepsInAll() const {
    return static_cast<int32_t>(1 + items_.size() + pairs_.size() + co_residents_.size() +
                                fused_.size());
  }

  absl::Status MeasureDevice() {
    Report("device", nullptr);
    if (!checkpoint_.device_measured) {
      DeviceMeter meter(timer_, lanes_, items_, options_, result_.notes);
      absl::StatusOr<core::DeviceProfile> measured = meter.Measure();
      if (!measured.ok()) return measured.status();
      NoteDropped("the device");
      checkpoint_.device = ReadableDevice(*measured, device_.capabilities().profile, result_.notes);
      checkpoint_.device_measured = true;
      checkpoint_.record.copies = meter.copies();
      if (absl::Status status = Keep(); !status.ok()) return status;
    }
    ++done_;
    Report("device", nullptr);
    return absl::OkStatus();
  }

  // --- stages ------------------------------------------------------------------------------------

  absl::Status MeasureStages() {
    for (size_t s = 0; s < kStages; ++s) told_[s].assign(CountOf(Stage(s)), false);
    int32_t before = 0;
    do {
      before = recorded_;
      for (size_t s = 0; s < kStages; ++s) {
        if (absl::Status status = MeasureStage(Stage(s)); !status.ok()) return status;
      }
      // Shares end before the time does where a later stage has less to do than its own.
    } while (recorded_ > before && !TotalIsSpent() && AnythingLeft());
    return absl::OkStatus();
  }

  absl::Status MeasureStage(Stage stage) {
    const size_t count = CountOf(stage);
    for (size_t i = 0; i < kStages; ++i) work_[i] = LeftOf(Stage(i));
    left_ = work_[static_cast<size_t>(stage)];
    stage_end_ns_ = std::numeric_limits<core::TimeNs>::max();
    if (bounded()) {
      const double seconds = SecondsOfStage(stage, SecondsLeft(), work_);
      stage_end_ns_ = device_.NowNs() + static_cast<core::TimeNs>(seconds * 1e9);
    }
    const std::vector<size_t> order = OrderOf(stage);
    for (size_t n = 0; n < count; ++n) {
      const size_t i = order[n];
      if (!IsKnown(stage, i) && IsReady(stage, i) && MayBegin(stage, i)) {
        if (absl::Status status = MeasureOne(stage, i); !status.ok()) return status;
      }
      if (IsKnown(stage, i)) Tell(stage, i);
    }
    return unsaved_ ? Keep() : absl::OkStatus();
  }

  bool bounded() const { return options_.seconds_total > 0; }
  double SecondsLeft() const {
    const auto spent_ns = static_cast<double>(device_.NowNs() - begun_ns_);
    return options_.seconds_total - spent_ns * 1e-9;
  }
  bool TotalIsSpent() const { return bounded() && SecondsLeft() <= 0; }

  // However short the time, one measurement is made: repeated calls come to an end. What takes no
  // time is always done.
  bool MayBegin(Stage stage, size_t i) const {
    if (stage == Stage::kFused && fused_[i].local_bytes > 0) return true;
    return attempts_ == 0 || device_.NowNs() < stage_end_ns_;
  }

  absl::Status MeasureOne(Stage stage, size_t i) {
    const std::string name = NameOf(stage, i);
    if (stage == Stage::kKernels || stage == Stage::kRest) Report(name, nullptr);
    ++attempts_;
    absl::Status status = Measure(stage, i);
    NoteDropped(absl::StrCat("'", name, "'"));
    left_ -= left_ > 0 ? 1 : 0;
    if (!status.ok()) return status;
    if (!IsKnown(stage, i)) return absl::OkStatus();
    ++recorded_;
    unsaved_ = true;
    const bool now = stage == Stage::kKernels || device_.NowNs() - saved_ns_ >= kKeepEveryNs;
    return now ? Keep() : absl::OkStatus();
  }

  absl::Status Measure(Stage stage, size_t i) {
    switch (stage) {
      case Stage::kKernels:
        return MeasureKernel(i);
      case Stage::kRest:
        return MeasureRest(i);
      case Stage::kPartitions:
        return MeasurePair(i);
      case Stage::kCoResident:
        return MeasureCoResident(i);
      case Stage::kFused:
        return MeasureFused(i);
    }
    return absl::InternalError("A calibration has no such stage.");
  }

  // Once for each measurement, from the checkpoint or made now.
  void Tell(Stage stage, size_t i) {
    if (told_[static_cast<size_t>(stage)][i]) return;
    told_[static_cast<size_t>(stage)][i] = true;
    // A kernel is one step, and reported whole.
    const bool whole = stage == Stage::kRest;
    if (!whole) ++done_;
    Report(NameOf(stage, i), whole ? KernelOf(i) : nullptr, whole && kept_[i]);
  }

  size_t CountOf(Stage stage) const {
    switch (stage) {
      case Stage::kPartitions:
        return pairs_.size();
      case Stage::kCoResident:
        return co_residents_.size();
      case Stage::kFused:
        return fused_.size();
      default:
        return items_.size();
    }
  }

  // Null: its durations are not measured.
  const KernelMeasurement* KernelOf(size_t item) const {
    const auto known = checkpoint_.kernels.find(digests_[item]);
    return known == checkpoint_.kernels.end() ? nullptr : &known->second;
  }

  const std::string& ItemName(size_t item) const { return items_[item].kernel.name; }

  std::string NameOf(Stage stage, size_t i) const {
    switch (stage) {
      case Stage::kPartitions:
        return absl::StrCat(ItemName(pairs_[i].first), " | ", ItemName(pairs_[i].second));
      case Stage::kCoResident:
        return absl::StrCat(ItemName(co_residents_[i].first), " + ",
                            ItemName(co_residents_[i].second));
      case Stage::kFused:
        return fused_[i].kernel.name;
      default:
        return ItemName(i);
    }
  }

  ItemPair PartsOf(Stage stage, size_t i) const {
    switch (stage) {
      case Stage::kPartitions:
        return pairs_[i];
      case Stage::kCoResident:
        return co_residents_[i];
      case Stage::kFused:
        return {fused_[i].tensor_item, fused_[i].cuda_item};
      default:
        return {i, i};
    }
  }

  // What it is measured against is there.
  bool IsReady(Stage stage, size_t i) const {
    if (stage == Stage::kKernels) return true;
    const auto [first, second] = PartsOf(stage, i);
    return KernelOf(first) != nullptr && KernelOf(second) != nullptr;
  }

  // Measured, or nothing to measure.
  bool IsKnown(Stage stage, size_t i) const {
    switch (stage) {
      case Stage::kKernels:
        return KernelOf(i) != nullptr;
      case Stage::kRest:
        return KernelOf(i) != nullptr && KernelOf(i)->rest_measured;
      case Stage::kPartitions: {
        const auto [lc, be] = pairs_[i];
        if (KernelOf(lc) != nullptr && KernelOf(lc)->speed.empty()) return true;
        return checkpoint_.pairs.count({digests_[lc], digests_[be]}) > 0;
      }
      case Stage::kCoResident: {
        const auto& known = checkpoint_.record.co_resident;
        return std::any_of(known.begin(), known.end(), [&](const CoResidentRecord& record) {
          return record.first == ItemName(co_residents_[i].first) &&
                 record.second == ItemName(co_residents_[i].second);
        });
      }
      case Stage::kFused: {
        const auto& known = checkpoint_.record.fused;
        return std::any_of(known.begin(), known.end(), [&](const FusedRecord& record) {
          return record.name == fused_[i].kernel.name;
        });
      }
    }
    return false;
  }

  size_t LeftOf(Stage stage) const {
    size_t left = 0;
    for (size_t i = 0; i < CountOf(stage); ++i) left += IsKnown(stage, i) ? 0 : 1;
    return left;
  }
  bool AnythingLeft() const {
    for (size_t s = 0; s < kStages; ++s) {
      if (LeftOf(Stage(s)) > 0) return true;
    }
    return false;
  }

  // With all the time there is, kernels are measured in the order in which they are given.
  std::vector<size_t> OrderOfKernels() const {
    std::vector<uint8_t> queries(items_.size(), 0);
    std::vector<ItemPair> parts;
    if (!bounded()) return KernelsByValue(queries, parts);
    for (size_t i = 0; i < items_.size(); ++i) {
      queries[i] = items_[i].kernel.kind != core::TaskKind::kKernel ? 1 : 0;
    }
    for (size_t i = 0; i < fused_.size(); ++i) parts.push_back(PartsOf(Stage::kFused, i));
    return KernelsByValue(queries, parts);
  }

  std::vector<size_t> OrderOf(Stage stage) const {
    if (stage == Stage::kKernels || stage == Stage::kRest) return OrderOfKernels();
    const size_t count = CountOf(stage);
    std::vector<ItemPair> parts;
    for (size_t i = 0; i < count; ++i) parts.push_back(PartsOf(stage, i));
    if (stage == Stage::kFused) {
      std::vector<uint8_t> spills;
      for (const CalibrationFused& fused : fused_) spills.push_back(fused.local_bytes > 0 ? 1 : 0);
      return FusedByValue(parts, spills);
    }
    std::vector<Intensity> intensities(items_.size(), Intensity::kUnknown);
    // Beside each other on partitions, a query's neighbours are worth alike.
    for (size_t i = 0; stage == Stage::kCoResident && i < items_.size(); ++i) {
      if (KernelOf(i) != nullptr) intensities[i] = KernelOf(i)->intensity;
    }
    return PairsByValue(parts, intensities);
  }

  // --- one measurement ---------------------------------------------------------------------------

  // Of one kernel: an equal part of what the stage has left. Never nothing: a first sample of each
  // value is taken in any case. The meter shares it as if the kernel had both parts: `share` is
  // this one's.
  CalibrationOptions OptionsOfKernel(double share) const {
    CalibrationOptions options = options_;
    if (!bounded()) return options;
    const auto left_ns = static_cast<double>(stage_end_ns_ - device_.NowNs());
    const double each = left_ns * 1e-9 / static_cast<double>(std::max<size_t>(1, left_)) / share;
    options.seconds_per_kernel = std::clamp(
        each, std::min(kSecondsLeast, options_.seconds_per_kernel), options_.seconds_per_kernel);
    return options;
  }

  absl::Status MeasureKernel(size_t i) {
    Forget(i);
    const CalibrationOptions options = OptionsOfKernel(kBasicsShare);
    KernelMeter meter(timer_, lanes_, items_[i], options, result_.notes);
    absl::StatusOr<KernelMeasurement> measured = meter.MeasureBasics();
    if (!measured.ok()) return measured.status();
    KeepKernel(i, *measured);
    return absl::OkStatus();
  }

  absl::Status MeasureRest(size_t i) {
    const CalibrationOptions options = OptionsOfKernel(1 - kBasicsShare);
    KernelMeter meter(timer_, lanes_, items_[i], options, result_.notes);
    absl::StatusOr<KernelMeasurement> measured = meter.MeasureRest(*KernelOf(i));
    if (!measured.ok()) return measured.status();
    KeepKernel(i, *measured);
    return absl::OkStatus();
  }

  void KeepKernel(size_t i, const KernelMeasurement& measured) {
    if (!Usable(measured.name, CheckMeasurement(i, measured))) return;
    checkpoint_.kernels[digests_[i]] = measured;
  }

  // Whether a profile with this would be read back.
  absl::Status CheckMeasurement(size_t i, const KernelMeasurement& measured) const {
    absl::Status status =
        CheckReadable(checkpoint_.device, Describe(items_[i].kernel, measured, checkpoint_.device));
    CalibrationRecord record;
    record.kernels.push_back(RecordOf(measured));
    if (status.ok()) status = CheckReadable(checkpoint_.device, record);
    return status;
  }

  bool Usable(const std::string& name, const absl::Status& status) {
    if (status.ok()) return true;
    result_.notes.push_back(
        absl::StrCat("The measurement of '", name, "' was dropped: ", status.message()));
    return false;
  }

  void NoteDropped(const std::string& of) {
    const int dropped = timer_.TakeDropped();
    if (dropped == 0) return;
    result_.notes.push_back(absl::StrCat("While ", of, " was measured, ", dropped,
                                         " samples of a launch's time came out below 1 ns; they "
                                         "were dropped and taken again."));
  }

  // What the checkpoint has of a kernel that is measured anew, and of pairs with it, is of another
  // kernel.
  void Forget(size_t i) {
    const std::string& name = ItemName(i);
    std::erase_if(checkpoint_.kernels, [&](const auto& one) { return one.second.name == name; });
    std::erase_if(checkpoint_.record.co_resident, [&](const CoResidentRecord& record) {
      return record.first == name || record.second == name;
    });
    std::erase_if(checkpoint_.record.fused, [&](const FusedRecord& record) {
      return record.tensor == name || record.cuda == name;
    });
  }

  absl::Status MeasurePair(size_t i) {
    const auto [lc, be] = pairs_[i];
    PairMeter meter(timer_, lanes_, options_);
    CalibrationItem background = items_[be];
    background.kernel.simulation.block_task_ns = KernelOf(be)->block_task_ns;
    absl::StatusOr<PairMeasurement> pair = meter.Measure(items_[lc], *KernelOf(lc), background);
    if (!pair.ok()) return pair.status();
    const size_t dropped = std::erase_if(pair->speeds, [](const PairMeasurement::Speed& speed) {
      return !(speed.beside > 0) || !std::isfinite(speed.beside) || !std::isfinite(speed.alone);
    });
    if (dropped > 0) {
      result_.notes.push_back(absl::StrCat("Of '", NameOf(Stage::kPartitions, i), "' ", dropped,
                                           " impossible speeds were dropped."));
    }
    checkpoint_.pairs[{digests_[lc], digests_[be]}] = *std::move(pair);
    return absl::OkStatus();
  }

  absl::Status MeasureCoResident(size_t i) {
    const auto [first, second] = co_residents_[i];
    CoResidentMeter meter(timer_, lanes_, options_);
    absl::StatusOr<CoResidentRecord> record =
        meter.Measure(items_[first], *KernelOf(first), items_[second], *KernelOf(second));
    if (!record.ok()) return record.status();
    CalibrationRecord alone;
    alone.co_resident.push_back(*record);
    if (Usable(NameOf(Stage::kCoResident, i), CheckReadable(checkpoint_.device, alone))) {
      checkpoint_.record.co_resident.push_back(*std::move(record));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FusedRecord> MeasureOneFused(const CalibrationFused& fused) {
    const CalibrationItem& tensor = items_[fused.tensor_item];
    const CalibrationItem& cuda = items_[fused.cuda_item];
    if (fused.local_bytes == 0) {
      FusedMeter meter(timer_, lanes_, options_);
      return meter.Measure(fused.kernel, tensor, *KernelOf(fused.tensor_item), cuda,
                           *KernelOf(fused.cuda_item));
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

  absl::Status MeasureFused(size_t i) {
    absl::StatusOr<FusedRecord> record = MeasureOneFused(fused_[i]);
    if (!record.ok()) return record.status();
    CalibrationRecord alone;
    alone.fused.push_back(*record);
    if (Usable(NameOf(Stage::kFused, i), CheckReadable(checkpoint_.device, alone))) {
      checkpoint_.record.fused.push_back(*std::move(record));
    }
    return absl::OkStatus();
  }

  // --- the result --------------------------------------------------------------------------------

  // Kernels without slices and evictions are reported here, with what they have.
  void FinishKernels() {
    for (size_t i = 0; i < items_.size(); ++i) {
      const KernelMeasurement* const known = KernelOf(i);
      if (known == nullptr) continue;
      result_.kernels.push_back(*known);
      result_.kept += kept_[i] ? 1 : 0;
      if (!known->rest_measured) Report(known->name, known, kept_[i]);
    }
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const auto [lc, be] = pairs_[i];
      const auto known = checkpoint_.pairs.find({digests_[lc], digests_[be]});
      if (known == checkpoint_.pairs.end() || !IsReady(Stage::kPartitions, i)) continue;
      result_.pairs.push_back(known->second);
      result_.pairs.back().lc = ItemName(lc);
      result_.pairs.back().be = ItemName(be);
    }
  }

  void NoteNotReached(Stage stage) {
    std::vector<std::string> names;
    for (size_t i : OrderOf(stage)) {
      if (!IsKnown(stage, i)) names.push_back(NameOf(stage, i));
    }
    if (names.empty()) return;
    const char* const what = kStageShares[static_cast<size_t>(stage)].what;
    std::string note = "Without a usable measurement: ";
    if (TotalIsSpent()) {
      note =
          absl::StrCat("The time of ", options_.seconds_total, " s in all was over; not reached: ");
    }
    absl::StrAppend(&note, names.size(), " of ", CountOf(stage), " ", what, " (");
    for (size_t i = 0; i < names.size() && i < kNamesMax; ++i) {
      absl::StrAppend(&note, i == 0 ? "" : ", ", names[i]);
    }
    if (names.size() > kNamesMax) {
      absl::StrAppend(&note, " and ", names.size() - kNamesMax, " more");
    }
    result_.notes.push_back(absl::StrCat(note, "). Resuming goes on there."));
    result_.not_reached.insert(result_.not_reached.end(), names.begin(), names.end());
    done_ = StepsInAll();
    Report(what, nullptr);
  }

  // Measured by value, and told as they were asked for.
  void SortRecords() {
    std::map<std::string, size_t> rank;
    for (size_t i = 0; i < fused_.size(); ++i) rank.emplace(fused_[i].kernel.name, i);
    for (size_t i = 0; i < co_residents_.size(); ++i) {
      rank.emplace(NameOf(Stage::kCoResident, i), i);
    }
    const auto rank_of = [&](const std::string& name) {
      const auto known = rank.find(name);
      return known == rank.end() ? rank.size() : known->second;
    };
    CalibrationRecord& record = checkpoint_.record;
    std::stable_sort(record.fused.begin(), record.fused.end(),
                     [&](const FusedRecord& a, const FusedRecord& b) {
                       return rank_of(a.name) < rank_of(b.name);
                     });
    const auto rank_of_pair = [&](const CoResidentRecord& one) {
      return rank_of(absl::StrCat(one.first, " + ", one.second));
    };
    std::stable_sort(record.co_resident.begin(), record.co_resident.end(),
                     [&](const CoResidentRecord& a, const CoResidentRecord& b) {
                       return rank_of_pair(a) < rank_of_pair(b);
                     });
  }

  absl::StatusOr<CalibrationResult> Complete() {
    FinishKernels();
    SortRecords();
    for (size_t s = 0; s < kStages; ++s) NoteNotReached(Stage(s));
    JudgeFused(checkpoint_.record.fused, result_.notes);
    Profile& profile = result_.profile;
    profile.device = checkpoint_.device;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (KernelOf(i) == nullptr) continue;
      profile.kernels.push_back(Describe(items_[i].kernel, *KernelOf(i), checkpoint_.device));
    }
    // A profile is of one GPU: records of another are not carried over.
    const bool same = base_.device.gpu_model == profile.device.gpu_model;
    for (const core::KernelDesc& kernel : base_.kernels) {
      if (same && profile.FindKernel(kernel.name) == nullptr) profile.kernels.push_back(kernel);
    }
    profile.calibration =
        MergeRecords(checkpoint_.record, result_.kernels, same ? &base_.calibration : nullptr);
    profile.learned = Learn(profile, result_.kernels, result_.pairs);
    if (options_.output_path.empty()) return std::move(result_);
    if (absl::Status status = SaveProfile(options_.output_path, profile); !status.ok()) {
      return status;
    }
    if (result_.not_reached.empty()) {
      std::remove(CheckpointPath(options_.output_path).c_str());
    } else if (absl::Status status = Keep(); !status.ok()) {
      return status;
    }
    return std::move(result_);
  }

  core::Device& device_;
  const Profile& base_;
  const CalibrationOptions& options_;
  LaunchTimer timer_;
  core::Lanes lanes_;
  std::vector<CalibrationItem> items_;
  Checkpoint checkpoint_;  // all that is measured, from an earlier call or now
  CalibrationResult result_;
  std::vector<uint64_t> digests_;       // of the items
  std::vector<bool> kept_;              // of the items: the durations come from the checkpoint
  std::vector<ItemPair> pairs_;         // on the two sides of a split
  std::vector<ItemPair> co_residents_;  // on the same SMs
  std::vector<CalibrationFused> fused_;
  CalibrationSize size_;
  std::array<std::vector<bool>, kStages> told_;
  std::array<size_t, kStages> work_{};  // measurements that are left, when the stage began
  size_t left_ = 0;                     // of this stage
  core::TimeNs begun_ns_ = 0;
  core::TimeNs stage_end_ns_ = 0;
  core::TimeNs saved_ns_ = 0;
  bool unsaved_ = false;
  int32_t attempts_ = 0;  // measurements that were begun, of all stages
  int32_t recorded_ = 0;  // of which a record came out
  int32_t done_ = 0;
};

}  // namespace

std::string CheckpointPath(const std::string& output_path) { return output_path + ".partial"; }

absl::StatusOr<CalibrationResult> Calibrate(core::Device& device, const Profile& base,
                                            absl::Span<const CalibrationItem> items,
                                            const CalibrationOptions& options) {
  if (absl::Status status = CheckCalibration(items, options); !status.ok()) return status;
  return std::make_unique<Calibration>(device, base, options)->Run(items);
}

}  // namespace gpushare::models
