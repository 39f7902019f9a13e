// The profile of a calibration; see profile.h.

#include "src/calibration/profile/profile.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/checks/occupancy.h"
#include "src/core/seams/cost_model.h"
#include "src/models/learned/learned.h"
#include "src/models/online/online_model.h"

namespace gpushare::models {
namespace {

// A graph keeps its nodes as they are when their sum differs from the measured time by no more.
constexpr double kNodesAgree = 0.02;
// A measured speed counts as so many queries, so that later ones move it slowly.
constexpr int kPairSamples = 16;
// A higher speed relative to the whole device is a wrong measurement.
constexpr double kSpeedMax = 10;

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

core::KernelDesc WithoutHandles(const core::KernelDesc& given) {
  core::KernelDesc kernel = given;
  kernel.id = core::KernelId();
  core::DropHandles(kernel.code);
  return kernel;
}

// The scheduler will see single queries of a graph or library call, so a query's duration counts
// where a pair measured it. The spread is that of the repeats.
double QueryOverSolo(const KernelMeasurement& measured, absl::Span<const PairMeasurement> pairs) {
  if (measured.solo_ns <= 0) return 1;
  double query_ns = static_cast<double>(measured.solo_ns);
  for (const PairMeasurement& pair : pairs) {
    if (pair.lc == measured.name && pair.query_ns > 0) {
      query_ns = static_cast<double>(pair.query_ns);
    }
  }
  return query_ns / static_cast<double>(measured.solo_ns);
}

TrainedDurations TrainedSolo(const KernelMeasurement& measured,
                             absl::Span<const PairMeasurement> pairs,
                             const core::DeviceProfile& device, const core::KernelDesc& kernel) {
  const double factor = QueryOverSolo(measured, pairs);
  std::vector<SoloSize> sizes = measured.solo_sizes;
  for (SoloSize& size : sizes) {
    for (int64_t& ns : size.ns) ns = std::llround(factor * static_cast<double>(ns));
  }
  return TrainDurations(device, kernel, sizes);
}

void LearnEvictions(const KernelMeasurement& measured, const core::KernelDesc& kernel,
                    core::CostModel& model) {
  core::Observation seen;
  seen.features.kernel = &kernel;
  seen.features.kind = kernel.kind();
  seen.features.block_tasks = measured.block_tasks;
  seen.evicted = true;
  seen.form = core::Form::kWorkers;
  for (const int64_t sample : measured.eviction_ns) {
    seen.measured_ns = sample;
    model.Observe(seen);
  }
}

void LearnPair(const PairMeasurement& pair, const core::KernelDesc& lc, const core::KernelDesc& be,
               core::CostModel& model) {
  core::CoResident beside;
  beside.kernel = &be;
  core::Observation seen;
  seen.features.kernel = &lc;
  seen.features.kind = lc.kind();
  seen.beside = absl::MakeConstSpan(&beside, 1);
  const int64_t solo_ns = model.durations().PredictSolo(seen.features).duration_ns;
  for (const PairMeasurement::Speed& speed : pair.speeds) {
    if (!(speed.beside > 0)) continue;
    seen.sms = speed.lc_sms;
    beside.sms = 1;  // how many does not matter: the other side of the split
    seen.measured_ns = std::llround(static_cast<double>(solo_ns) / speed.beside);
    for (int i = 0; i < kPairSamples; ++i) model.Observe(seen);
  }
  for (const int64_t added_ns : pair.blocking_ns) {
    model.ObserveDelay(
        {.kernel = &lc, .kernel_trained = true, .evicted = &be, .added_ns = added_ns});
  }
}

// The fields of a device that are measured; all others are given.
constexpr int64_t core::DeviceProfile::*kMeasuredTimes[] = {
    &core::DeviceProfile::launch_issue_ns,         &core::DeviceProfile::launch_latency_ns,
    &core::DeviceProfile::graph_launch_latency_ns, &core::DeviceProfile::completion_latency_ns,
    &core::DeviceProfile::eviction_write_issue_ns, &core::DeviceProfile::eviction_write_latency_ns,
    &core::DeviceProfile::copy_latency_ns,
};
constexpr double core::DeviceProfile::*kMeasuredRates[] = {
    &core::DeviceProfile::pinned_bytes_per_ns,
    &core::DeviceProfile::duplex_bytes_per_ns,
    &core::DeviceProfile::pageable_h2d_bytes_per_ns,
    &core::DeviceProfile::pageable_d2h_bytes_per_ns,
};

// Takes over one measured field if the reader of profiles accepts it.
template <class Field>
void TakeOver(const core::DeviceProfile& measured, Field field, core::DeviceProfile& out,
              Notes& notes) {
  core::DeviceProfile with = out;
  with.*field = measured.*field;
  const absl::Status status = CheckReadable(with);
  if (status.ok()) {
    out = with;
    return;
  }
  notes.push_back(absl::StrCat("A measured value of the device was dropped, and the given one ",
                               "stays: ", status.message()));
}

}  // namespace

absl::Status CheckReadable(const core::DeviceProfile& device) {
  return CheckReadable(device, CalibrationRecord());
}

absl::Status CheckReadable(const core::DeviceProfile& device, const core::KernelDesc& kernel) {
  Profile profile;
  profile.device = device;
  profile.kernels = {kernel};
  return ParseProfile(FormatProfile(profile)).status();
}

absl::Status CheckReadable(const core::DeviceProfile& device, const CalibrationRecord& record) {
  Profile profile;
  profile.device = device;
  profile.calibration = record;
  return ParseProfile(FormatProfile(profile)).status();
}

core::DeviceProfile ReadableDevice(const core::DeviceProfile& measured,
                                   const core::DeviceProfile& given, Notes& notes) {
  if (CheckReadable(measured).ok()) return measured;
  core::DeviceProfile out = given;
  for (const auto field : kMeasuredTimes) TakeOver(measured, field, out, notes);
  for (const auto field : kMeasuredRates) TakeOver(measured, field, out, notes);
  return out;
}

double RecordedOverhead(const KernelMeasurement& measured) {
  return std::clamp(measured.worker_overhead, core::kMinWorkerOverhead, core::kMaxWorkerOverhead);
}

KernelRecord RecordOf(const KernelMeasurement& measured) {
  return {measured.name,           measured.intensity,
          measured.flat_from_sms,  measured.slice_block_tasks,
          measured.slice_overhead, measured.workers_per_sm_least};
}

core::KernelDesc DescribeUnmeasured(const core::KernelDesc& given,
                                    const core::DeviceProfile& device) {
  core::KernelDesc kernel = WithoutHandles(given);
  kernel.resources.workers_per_sm_max = WorkersPerSm(given, device);
  return kernel;
}

core::KernelDesc Describe(const core::KernelDesc& given, const KernelMeasurement& measured,
                          const core::DeviceProfile& device) {
  core::KernelDesc kernel = WithoutHandles(given);
  kernel.resources.workers_per_sm_max = measured.workers_per_sm;
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

bool TakeOverKernels(const Profile& base, Profile& profile) {
  if (base.device.gpu_model != profile.device.gpu_model) return false;
  for (const core::KernelDesc& kernel : base.kernels) {
    if (profile.FindKernel(kernel.name) == nullptr) profile.kernels.push_back(kernel);
  }
  return true;
}

std::string Learn(const Profile& profile, absl::Span<const KernelMeasurement> measured,
                  absl::Span<const PairMeasurement> pairs) {
  std::vector<core::KernelDesc> kernels;
  kernels.reserve(measured.size());  // observed by address
  Learned solos;
  for (const KernelMeasurement& one : measured) {
    kernels.push_back(*profile.FindKernel(one.name));
    kernels.back().id = core::KernelId{static_cast<uint32_t>(kernels.size())};
    TrainedDurations trained = TrainedSolo(one, pairs, profile.device, kernels.back());
    LearnedKernel& learned = solos.kernels.emplace_back();
    learned.name = one.name;
    learned.solo = trained.line;
    learned.shape = std::move(trained.shape);
  }
  std::unique_ptr<core::CostModel> model = MakeOnlineModel(profile.device);
  // A text of what was trained is read back.
  if (!model->Load(FormatLearned(solos)).ok()) return "";
  for (size_t i = 0; i < measured.size(); ++i) {
    model->AddKernel(kernels[i]);
    LearnEvictions(measured[i], kernels[i], *model);
  }
  const auto find = [&](const std::string& name) {
    return std::find_if(kernels.begin(), kernels.end(),
                        [&](const core::KernelDesc& kernel) { return kernel.name == name; });
  };
  for (const PairMeasurement& pair : pairs) {
    LearnPair(pair, *find(pair.lc), *find(pair.be), *model);
  }
  return model->Save();
}

CalibrationRecord MergeRecords(const CalibrationRecord& measured,
                               absl::Span<const KernelMeasurement> kernels,
                               const CalibrationRecord* base) {
  std::set<std::string> names;
  for (const KernelMeasurement& one : kernels) names.insert(one.name);
  const auto has = [&](const std::string& name) { return names.count(name) > 0; };
  CalibrationRecord record;
  record.copies = measured.copies;
  for (const KernelMeasurement& one : kernels) record.kernels.push_back(RecordOf(one));
  // A checkpoint may have pairs of kernels that are not in this calibration.
  for (const CoResidentRecord& one : measured.co_resident) {
    if (has(one.first) && has(one.second)) record.co_resident.push_back(one);
  }
  for (const FusedRecord& one : measured.fused) {
    if (has(one.tensor) && has(one.cuda)) record.fused.push_back(one);
  }
  if (base == nullptr) return record;
  for (const KernelRecord& one : base->kernels) {
    if (!has(one.name)) record.kernels.push_back(one);
  }
  // A pair is kept only if neither of its kernels was measured anew.
  for (const CoResidentRecord& one : base->co_resident) {
    if (!has(one.first) && !has(one.second)) record.co_resident.push_back(one);
  }
  for (const FusedRecord& one : base->fused) {
    if (!has(one.tensor) && !has(one.cuda)) record.fused.push_back(one);
  }
  if (record.copies.empty()) record.copies = base->copies;
  return record;
}

}  // namespace gpushare::models
