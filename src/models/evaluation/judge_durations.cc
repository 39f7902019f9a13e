// Judges the lines over block tasks and over bytes, as the scheduler trains them: repeat by repeat.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/durations/linear_model.h"
#include "src/models/evaluation/judged.h"
#include "src/models/online/copy_model.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

constexpr double kCopyJudgedNs = 100'000;  // shorter copies are mostly latency

// Kernel and form; of workers all that the device holds.
using KernelForm = std::pair<std::string, core::Form>;

struct Lines {
  LinearModel line;
  double ns_per_task = 0;  // of the first row: the prior of the others
  std::set<int64_t> sizes;
};

bool IsOnWholeDevice(const Samples& samples, const SampleRow& row) {
  return row.what == SampleKind::kSolo && row.sms == samples.head.sm_count &&
         row.workers_per_sm == 0 && row.block_tasks > 0 && !row.ns.empty();
}

// An ordinary grid of some block tasks is a slice of the whole grid.
core::Form JudgedForm(const SampleRow& row) {
  return row.form == core::Form::kSlice ? core::Form::kOriginal : row.form;
}

core::TaskFeatures FeaturesOf(const SampleRow& row) {
  core::TaskFeatures features;
  features.kind = core::TaskKind::kMemcpy;
  features.bytes = row.bytes;
  features.pinned = row.pinned;
  features.direction =
      row.to_device ? core::CopyDirection::kHostToDevice : core::CopyDirection::kDeviceToHost;
  return features;
}

}  // namespace

void JudgeKernels(const Samples& samples, std::vector<Judged>& out) {
  std::map<KernelForm, Lines> models;
  for (const SampleRow& row : samples.rows) {
    if (!IsOnWholeDevice(samples, row) || IsHeldOut(row)) continue;
    Lines& model = models[{row.kernel, JudgedForm(row)}];
    const auto tasks = static_cast<double>(row.block_tasks);
    if (model.sizes.empty()) model.ns_per_task = Median(row.ns) / tasks;
    model.sizes.insert(row.block_tasks);
    for (const double ns : row.ns) model.line.Observe(tasks, ns, model.ns_per_task * tasks);
  }
  for (const SampleRow& row : samples.rows) {
    if (!IsOnWholeDevice(samples, row) || !IsHeldOut(row)) continue;
    const auto model = models.find({row.kernel, JudgedForm(row)});
    // One size says nothing of another.
    if (model == models.end() || model->second.sizes.size() < 2) continue;
    const auto tasks = static_cast<double>(row.block_tasks);
    const core::Prediction prediction =
        model->second.line.Predict(tasks, model->second.ns_per_task * tasks);
    out.push_back({row.form == core::Form::kWorkers ? "workers" : "ordinary grids",
                   "line over block tasks",
                   absl::StrCat(row.kernel, " of ", row.block_tasks, " block tasks"),
                   static_cast<double>(prediction.duration_ns), Median(row.ns)});
  }
}

void JudgeCopies(const Samples& samples, std::vector<Judged>& out) {
  const core::DeviceProfile device;  // the table learns what its rates are off by
  CopyModel model;
  const auto counts = [](const SampleRow& row) {
    return row.what == SampleKind::kCopy && !row.both_ways && !row.ns.empty();
  };
  for (const SampleRow& row : samples.rows) {
    if (!counts(row) || IsHeldOut(row)) continue;
    for (const double ns : row.ns) model.Observe(device, FeaturesOf(row), ns);
  }
  for (const SampleRow& row : samples.rows) {
    const double measured = Median(row.ns);
    if (!counts(row) || !IsHeldOut(row) || measured < kCopyJudgedNs) continue;
    const core::Prediction prediction = model.Predict(device, FeaturesOf(row));
    out.push_back({row.pinned ? "pinned copies" : "pageable copies", "table over bytes",
                   absl::StrCat(row.bytes, " bytes ", row.to_device ? "to" : "from", " the device"),
                   static_cast<double>(prediction.duration_ns), measured});
  }
}

}  // namespace gpushare::models
