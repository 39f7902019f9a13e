// Training from samples; see train_profile.h.

#include "src/models/training/train_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/learned/learned.h"
#include "src/models/training/row_counters.h"
#include "src/models/training/train_co_resident.h"
#include "src/models/training/train_copies.h"
#include "src/models/training/train_durations.h"
#include "src/models/training/train_library.h"
#include "src/models/training/train_neighbours.h"

namespace gpushare::models {
namespace {

using core::Form;
using core::KernelCounters;
using core::KernelDesc;
using core::ResourceDemand;

// The form that a record's block task and a prediction are of: ordinary grids, not workers.
bool IsOrdinary(Form form) {
  return form == Form::kOriginal || form == Form::kSlice || form == Form::kGraph ||
         form == Form::kLibrary;
}

// By kernel; sizes in the order of their first rows. A size that was measured twice is one.
std::map<std::string, std::vector<SoloSize>> SizesOf(const Samples& samples) {
  std::map<std::string, std::vector<SoloSize>> kernels;
  for (const SampleRow& row : samples.rows) {
    const bool counts = row.what == SampleKind::kSolo && row.sms == samples.head.sm_count &&
                        row.workers_per_sm == 0 && IsOrdinary(row.form);
    if (!counts) continue;
    AddRepeats(row.block_tasks, row.ns, kernels[row.kernel]);
  }
  return kernels;
}

void SetSolo(const std::string& name, TrainedDurations trained, Learned& learned) {
  auto known = std::find_if(learned.kernels.begin(), learned.kernels.end(),
                            [&](const LearnedKernel& kernel) { return kernel.name == name; });
  if (known == learned.kernels.end()) {
    if (learned.kernels.size() == static_cast<size_t>(core::kMaxKernels)) return;
    known = learned.kernels.emplace(known);
    known->name = name;
  }
  known->solo = trained.line;
  known->shape = std::move(trained.shape);
}

void FillDemand(const KernelCounters& counters, bool replace, ResourceDemand& demand) {
  if (replace || (demand.issue == 0 && demand.tensor == 0 && demand.special == 0)) {
    demand.issue = counters.issue;
    demand.tensor = counters.tensor;
    demand.special = counters.special;
  }
  if (replace || (demand.dram == 0 && demand.l2 == 0)) {
    demand.dram = counters.dram;
    demand.l2 = counters.l2;
  }
}

absl::Status CheckSameGpu(const SamplesHead& head, const core::DeviceProfile& device) {
  if (head.gpu_model == device.gpu_model && head.sm_count == device.sm_count) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "The samples are of '", head.gpu_model, "' with ", head.sm_count,
      " SMs, and the profile is of '", device.gpu_model, "' with ", device.sm_count, "."));
}

}  // namespace

absl::Status TrainProfile(const Samples& samples, const TrainOptions& options, Profile& profile) {
  GPUSHARE_RETURN_IF_ERROR(CheckSameGpu(samples.head, profile.device));
  Learned learned;
  if (!profile.learned.empty()) {
    GPUSHARE_ASSIGN_OR_RETURN(learned, ParseLearned(profile.learned));
  }
  const std::map<std::string, std::vector<SoloSize>> sizes = SizesOf(samples);
  for (KernelDesc& kernel : profile.kernels) {
    if (const KernelCounters counters = CountersOf(samples, kernel.name); counters.present()) {
      kernel.counters = counters;
      if (kernel.simulation.present) {
        FillDemand(counters, options.replace_demands, kernel.simulation.demand);
      }
    }
    const auto measured = sizes.find(kernel.name);
    if (measured == sizes.end()) continue;
    SetSolo(kernel.name, TrainDurations(profile.device, kernel, measured->second), learned);
  }
  FitCopySlowdowns(samples, profile.device);
  TrainCopies(samples, profile.device, learned);
  TrainNeighbours(samples, learned);
  TrainCoResident(samples, profile.kernels, learned);
  TrainLibrary(samples, learned);
  profile.learned = FormatLearned(learned);
  return absl::OkStatus();
}

}  // namespace gpushare::models
