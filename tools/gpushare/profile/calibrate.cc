#include "tools/gpushare/profile/calibrate.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/progress.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/profile/calibrate_kernels.h"
#include "tools/gpushare/scenario/scenario.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

namespace {

// The duration to aim at for a sample task, within limits on its rounds of block tasks. It is long
// against launches and evictions, and short against the time of one kernel.
constexpr int64_t kSampleNs = 10'000'000;
constexpr int64_t kRoundsLeast = 8;
constexpr int64_t kRoundsMost = 128;
// Defaults for a kernel that no profile knows.
constexpr int64_t kUnknownBlockTaskNs = 100'000;
constexpr int kUnknownWorkersPerSm = 8;
constexpr int64_t kCopyBytes = int64_t{128} << 20;
// Bytes of copies to sample: 256 MB each way.
constexpr int64_t kSampledCopyBytes = int64_t{512} << 20;
constexpr char kAppName[] = "calibrate";

// A kernel and the structs that the library reads; their addresses must not change.
struct Sample {
  std::string name;
  gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
};

// A fused kernel of two samples; addresses must not change.
struct FusedSample {
  FusedChoice choice;
  gpushare_fused_kernel_options kernel = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
};

struct Row {
  std::string name;
  gpushare_kernel_calibration measured = GPUSHARE_KERNEL_CALIBRATION_INIT;
  std::vector<int32_t> knees;
  size_t sizes = 0;
};

// What the progress callback collects.
struct Collected {
  Progress progress;
  int32_t done = 0;
  std::vector<Row> rows;
  std::vector<std::string> notes;

  Collected(size_t steps, bool quiet) : progress(steps, quiet) {}
};

int64_t SampleBlockTasks(const gpushare_kernel_info& info, int sm_count) {
  const int64_t task_ns = info.block_task_ns > 0 ? info.block_task_ns : kUnknownBlockTaskNs;
  const int workers = info.workers_per_sm_max > 0 ? info.workers_per_sm_max : kUnknownWorkersPerSm;
  return std::clamp(kSampleNs / task_ns, kRoundsLeast, kRoundsMost) * workers * sm_count;
}

// The part that needs a runtime. The library then opens the device again for itself.
class Samples {
 public:
  explicit Samples(const CalibrateOptions& options) {
    const RuntimeHandle runtime = OpenRuntime(options.device, "bare");
    facts_ = FactsOf(runtime.get());
    workloads_ = MakeWorkloads(facts_);
    Add(options, runtime.get());
    if (samples_.empty()) throw InputError("The device can run no kernel of the profile.");
    for (const std::unique_ptr<Sample>& sample : samples_) {
      items_.push_back({&sample->kernel, &sample->task});
    }
    // Copies come with kernels only: a run of shapes or queries would measure them again.
    if (options.instead != CalibrateOptions::Instead::kNothing) return;
    copies_ = BindCopies(options.samples.empty() ? kCopyBytes : kSampledCopyBytes);
  }

  const DeviceFacts& facts() const { return facts_; }
  const std::vector<gpushare_calibration_item>& items() const { return items_; }
  const std::vector<gpushare_calibration_fused>& fused() const { return fused_; }
  const std::vector<TaskBinding>& copies() const { return copies_; }
  int64_t copy_bytes() const { return copy_bytes_; }

 private:
  // The names of the kernels to measure. Nothing is allocated yet.
  std::vector<std::string> Names(const CalibrateOptions& options, gpushare_runtime* runtime) const {
    KernelChoice choice;
    choice.asked = options.kernels;
    choice.with_catalogue = options.catalogue;
    choice.catalogue = workloads_->CatalogueNames();
    for (const std::string& name : ProfileKernelNames(runtime)) {
      if (workloads_->CanRun(name, true)) choice.profile.push_back(name);
    }
    for (const std::string& name : options.kernels) {
      if (workloads_->CanRun(name, false)) choice.others.push_back(name);
    }
    return ChooseKernels(choice);
  }

  void AddKernels(const CalibrateOptions& options, gpushare_runtime* runtime) {
    const std::vector<std::string> names = Names(options, runtime);
    for (const std::string& name : names) {
      // Opaque work has no profile; the caller gets a note if it named such work.
      if (Add(runtime, name) || options.kernels.empty()) continue;
      throw InputError("The kernel '" + name + "' is opaque work, which has no profile.");
    }
    for (const FusedChoice& choice : workloads_->FusedOf(names)) AddFused(choice);
  }

  void Add(const CalibrateOptions& options, gpushare_runtime* runtime) {
    switch (options.instead) {
      case CalibrateOptions::Instead::kNothing:
        return AddKernels(options, runtime);
      case CalibrateOptions::Instead::kShapes:
        return AddShapes(ShapeSet::kKnown);
      case CalibrateOptions::Instead::kBlindShapes:
        return AddShapes(ShapeSet::kBlind);
      case CalibrateOptions::Instead::kDrawnShapes:
        return AddShapes(ShapeSet::kDrawn);
      case CalibrateOptions::Instead::kPlacedShapes:
        return AddShapes(ShapeSet::kPlaced);
      case CalibrateOptions::Instead::kQueries:
        return AddQueries();
    }
  }

  // Queries are measured on the whole device only, as shapes are.
  void AddQueries() {
    for (const GraphChoice& query : workloads_->SizedQueries()) {
      auto sample = std::make_unique<Sample>();
      sample->name = query.name;
      sample->kernel.name = sample->name.c_str();
      sample->kernel.kind = GPUSHARE_TASK_GRAPH;
      sample->kernel.capture = query.capture;
      sample->kernel.capture_user = query.user;
      sample->kernel.confinable = GPUSHARE_CHOICE_NO;
      samples_.push_back(std::move(sample));
    }
    if (samples_.empty()) throw InputError("--queries needs a GPU, which runs them.");
  }

  // Shapes are measured on the whole device only, but those of kPlaced on every place.
  void AddShapes(ShapeSet set) {
    for (const LibraryShape& shape : workloads_->LibraryShapes(set)) {
      auto sample = std::make_unique<Sample>();
      sample->name = shape.name;
      sample->kernel.name = sample->name.c_str();
      sample->kernel.kind = GPUSHARE_TASK_LIBRARY;
      sample->kernel.library = &shape.call;
      if (set != ShapeSet::kPlaced) sample->kernel.confinable = GPUSHARE_CHOICE_NO;
      sample->task.arguments = &shape.arguments;
      sample->task.arguments_size_bytes = sizeof(shape.arguments);
      samples_.push_back(std::move(sample));
    }
    if (samples_.empty())
      throw InputError("Shapes of library calls need a GPU, which has the libraries.");
  }

  // Adds a kernel. False for opaque work.
  bool Add(gpushare_runtime* runtime, const std::string& name) {
    gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
    const gpushare_status known = gpushare_kernel_info_by_name(runtime, name.c_str(), &info);
    if (known != GPUSHARE_OK) {
      if (known != GPUSHARE_NOT_FOUND || !workloads_->CanRun(name, false)) Check(known);
      info = GPUSHARE_KERNEL_INFO_INIT;
    } else if (!workloads_->CanRun(name, true)) {
      throw InputError("The device cannot run the kernel '" + name + "'.");
    }
    auto sample = std::make_unique<Sample>();
    sample->name = name;
    sample->kernel.name = sample->name.c_str();
    if (!workloads_->FillKernel(name, info.kind, sample->kernel)) return false;
    WorkItem work;
    work.kernel = name;
    if (workloads_->CountsBlocks(name, info.kind)) {
      work.block_tasks = SampleBlockTasks(info, facts_.sm_count);
    }
    // Each kernel is an app of its own, so that the buffers are its own.
    const std::vector<TaskBinding> bindings =
        workloads_->Bind(std::string(kAppName) + "." + name, {work});
    sample->task = TaskOptionsOf(bindings.front(), nullptr);
    samples_.push_back(std::move(sample));
    return true;
  }

  uint32_t IndexOf(const std::string& name) const {
    const auto found = std::find_if(samples_.begin(), samples_.end(),
                                    [&](const auto& sample) { return sample->name == name; });
    return static_cast<uint32_t>(found - samples_.begin());
  }

  void AddFused(const FusedChoice& choice) {
    auto sample = std::make_unique<FusedSample>();
    sample->choice = choice;
    sample->kernel.name = sample->choice.name.c_str();
    sample->kernel.function = choice.function;
    sample->kernel.tensor_blocks = choice.tensor_blocks;
    sample->kernel.cuda_blocks = choice.cuda_blocks;
    sample->kernel.threads_per_block = choice.threads_per_block;
    sample->kernel.dynamic_shared_memory_bytes = choice.dynamic_shared_memory_bytes;
    sample->kernel.blocks_per_sm = choice.blocks_per_sm;
    fused_.push_back(
        {&sample->kernel, IndexOf(choice.tensor), IndexOf(choice.cuda), choice.local_bytes, 0});
    fused_samples_.push_back(std::move(sample));
  }

  std::vector<TaskBinding> BindCopies(int64_t bytes) {
    copy_bytes_ = bytes;
    WorkItem pinned;
    pinned.direction = CopyDirection::kHostToDevice;
    pinned.bytes = bytes;
    WorkItem pageable = pinned;
    pageable.pinned = false;
    return workloads_->Bind(std::string(kAppName) + ".copies", {pinned, pageable});
  }

  DeviceFacts facts_;
  std::unique_ptr<Workloads> workloads_;
  std::vector<std::unique_ptr<Sample>> samples_;
  std::vector<gpushare_calibration_item> items_;
  std::vector<std::unique_ptr<FusedSample>> fused_samples_;
  std::vector<gpushare_calibration_fused> fused_;
  std::vector<TaskBinding> copies_;
  int64_t copy_bytes_ = 0;
};

// The steps as the library counts them: the device, kernels, pairs on partitions and on the same
// SMs, fused kernels. For the line of progress, which may end below this number.
size_t Steps(const Samples& samples) {
  size_t lc = 0;
  size_t be = 0;
  for (const gpushare_calibration_item& item : samples.items()) {
    (item.kernel->kind == GPUSHARE_TASK_KERNEL ? be : lc) += 1;
  }
  const size_t steps = 1 + lc + be + 2 * lc * be + be * (be - (be > 0 ? 1 : 0)) / 2;
  return steps + samples.fused().size();
}

void Collect(void* user, const gpushare_calibration_progress* progress) {
  auto& collected = *static_cast<Collected*>(user);
  if (progress->note != nullptr) collected.notes.emplace_back(progress->note);
  // A phase that runs out of time skips several steps at once.
  for (; collected.done < progress->done; ++collected.done) {
    collected.progress.Step(progress->what);
  }
  if (progress->kernel == nullptr) return;
  Row& row = collected.rows.emplace_back();
  row.measured = *progress->kernel;
  row.name = progress->kernel->name;
  row.knees.assign(progress->kernel->knees, progress->kernel->knees + progress->kernel->knee_count);
  row.sizes = progress->kernel->speed_count;
}

std::string KneesText(const Row& row) {
  if (row.sizes == 0) return "not confinable";
  std::string text;
  for (const int32_t sms : row.knees) text += (text.empty() ? "" : " ") + std::to_string(sms);
  return text.empty() ? "-" : text;
}

std::string SliceText(const gpushare_kernel_calibration& one) {
  if (one.slice_block_tasks == 0) return "-";
  return Format("%lld", static_cast<long long>(one.slice_block_tasks));
}

const char* IntensityText(gpushare_intensity intensity) {
  if (intensity == GPUSHARE_INTENSITY_MEMORY) return "memory";
  return intensity == GPUSHARE_INTENSITY_COMPUTE ? "compute" : "-";
}

std::string RowText(const Row& row) {
  const gpushare_kernel_calibration& one = row.measured;
  const auto duration = [](int64_t ns) {
    return ns > 0 ? DurationText(static_cast<double>(ns)) : std::string("-");
  };
  const bool workers = one.worker_solo_ns > 0;
  return Format(
      "%-24.24s %9s %11s %3d %5s %9s %8s %10s %10s %8s  %s%s\n", row.name.c_str(),
      duration(one.solo_ns).c_str(), duration(one.block_task_ns).c_str(), one.workers_per_sm_max,
      one.workers_per_sm_least > 0 ? Format("%d", one.workers_per_sm_least).c_str() : "-",
      workers ? Format("%.2f %%", 100 * one.worker_overhead).c_str() : "-", SliceText(one).c_str(),
      duration(one.eviction_p50_ns).c_str(), duration(one.eviction_p99_ns).c_str(),
      IntensityText(one.intensity), KneesText(row).c_str(), one.kept != 0 ? "  (kept)" : "");
}

// The checkpoint of the profile `out`, empty: there is none.
std::string CheckpointOf(const std::string& out) {
  const std::string checkpoint = out + ".partial";
  std::error_code ignored;
  return std::filesystem::exists(checkpoint, ignored) ? checkpoint : "";
}

[[noreturn]] void ThrowInterrupted(const std::string& out) {
  std::string text = std::string("The calibration was interrupted by ") +
                     SignalName(InterruptSignal()) + ". The profile '" + out + "' is unchanged. ";
  const std::string checkpoint = CheckpointOf(out);
  text += checkpoint.empty() ? "Nothing was measured yet, so nothing is kept."
                             : "What was measured is in '" + checkpoint +
                                   "'; the same command with --resume goes on.";
  throw Interrupted(InterruptSignal(), text);
}

std::string TableText(const Samples& samples, const Collected& collected, const std::string& out) {
  std::string text =
      Format("Calibrated on %s (%d SMs)%s\n\n", samples.facts().name.c_str(),
             samples.facts().sm_count, samples.facts().simulated ? ", SIMULATED" : "");
  text +=
      Format("%-24s %9s %11s %3s %5s %9s %8s %10s %10s %8s  %s\n", "kernel", "solo", "block task",
             "M", "least", "PTB over.", "slice", "evict p50", "evict p99", "class", "knees (SMs)");
  for (const Row& row : collected.rows) text += RowText(row);
  for (const std::string& note : collected.notes) text += "\nNote: " + note;
  if (!collected.notes.empty()) text += "\n";
  text += "\nProfile: " + out + "\n";
  // The notes name what was not reached.
  if (const std::string checkpoint = CheckpointOf(out); !checkpoint.empty()) {
    text += "Checkpoint: " + checkpoint + ", from which the same command with --resume goes on\n";
  }
  return text;
}

}  // namespace

std::string Calibrate(const CalibrateOptions& options) {
  const Samples samples(options);
  const std::filesystem::path folder = std::filesystem::path(options.out).parent_path();
  if (!folder.empty()) MakeFolder(folder.string());
  gpushare_calibration_options known = GPUSHARE_CALIBRATION_OPTIONS_INIT;
  known.device = options.device.device.c_str();
  known.device_ordinal = samples.facts().ordinal;
  known.profile_path = options.device.profile.empty() ? nullptr : options.device.profile.c_str();
  known.output_path = options.out.c_str();
  known.items = samples.items().data();
  known.item_count = static_cast<uint32_t>(samples.items().size());
  known.cancel = InterruptFlag();
  known.sim_tier = options.device.tier.c_str();
  known.seed = options.device.seed;
  known.kernel_time_ns = options.kernel_time_ns;
  known.total_time_ns = options.total_time_ns;
  known.slice_overhead_max = options.slice_overhead_max;
  known.fused = samples.fused().empty() ? nullptr : samples.fused().data();
  known.fused_count = static_cast<uint32_t>(samples.fused().size());
  known.repeats = options.repeats;
  known.resume = options.resume ? 1 : 0;
  if (!samples.copies().empty()) {
    known.device_buffer = samples.copies()[0].copy_destination;
    known.pinned_buffer = const_cast<void*>(samples.copies()[0].copy_source);
    known.pageable_buffer = const_cast<void*>(samples.copies()[1].copy_source);
    known.buffer_size_bytes = samples.copy_bytes();
  }
  known.samples_path = options.samples.empty() ? nullptr : options.samples.c_str();
  Collected collected(Steps(samples), options.quiet);
  const gpushare_status status = gpushare_calibrate(&known, &Collect, &collected);
  if (InterruptSignal() != 0 && status != GPUSHARE_OK) ThrowInterrupted(options.out);
  Check(status);
  return TableText(samples, collected, options.out);
}

}  // namespace gpushare::tool
