// Judges durations over block tasks and over bytes, as the scheduler trains them: repeat by repeat.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/durations/kernel_durations.h"
#include "src/models/evaluation/judged.h"
#include "src/models/online/copy_model.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"
#include "src/models/training/train_copies.h"
#include "src/models/training/train_durations.h"

namespace gpushare::models {
namespace {

constexpr double kCopyJudgedNs = 100'000;  // shorter copies are mostly latency

// Kernel and form; of workers all that the device holds.
using KernelForm = std::pair<std::string, core::Form>;

bool IsOnWholeDevice(const Samples& samples, const SampleRow& row) {
  return row.what == SampleKind::kSolo && row.sms == samples.head.sm_count &&
         row.workers_per_sm == 0 && row.block_tasks > 0 && !row.ns.empty();
}

// An ordinary grid of some block tasks is a slice of the whole grid.
core::Form JudgedForm(const SampleRow& row) {
  return row.form == core::Form::kSlice ? core::Form::kOriginal : row.form;
}

struct Fitted {
  double ns_per_task = 0;  // of the first size: the prior of the others
  KernelDurations line;
  KernelDurations durations;

  double NsOf(int64_t block_tasks) const { return ns_per_task * static_cast<double>(block_tasks); }
};

Fitted Fit(const std::vector<SoloSize>& sizes, int32_t sm_count) {
  Fitted fitted;
  const std::vector<double> first(sizes.front().ns.begin(), sizes.front().ns.end());
  fitted.ns_per_task = Median(first) / static_cast<double>(sizes.front().block_tasks);
  const auto prior_ns = [&fitted](int64_t block_tasks) { return fitted.NsOf(block_tasks); };
  fitted.line.Restore(TrainLine(sizes, prior_ns), DurationShape());
  const TrainedDurations trained = TrainDurations(sizes, sm_count, prior_ns);
  fitted.durations.Restore(trained.line, trained.shape);
  return fitted;
}

}  // namespace

void JudgeKernels(const Samples& samples, std::vector<Judged>& out) {
  std::map<KernelForm, std::vector<SoloSize>> measured;
  for (const SampleRow& row : samples.rows) {
    if (!IsOnWholeDevice(samples, row) || IsHeldOut(row)) continue;
    AddRepeats(row.block_tasks, row.ns, measured[{row.kernel, JudgedForm(row)}]);
  }
  std::map<KernelForm, Fitted> models;
  for (const auto& [kernel, sizes] : measured) {
    if (sizes.size() > 1) models[kernel] = Fit(sizes, samples.head.sm_count);
  }
  for (const SampleRow& row : samples.rows) {
    if (!IsOnWholeDevice(samples, row) || !IsHeldOut(row)) continue;
    const auto model = models.find({row.kernel, JudgedForm(row)});
    // One size says nothing of another.
    if (model == models.end()) continue;
    const char* family = row.form == core::Form::kWorkers ? "workers" : "ordinary grids";
    const std::string name = absl::StrCat(row.kernel, " of ", row.block_tasks, " block tasks");
    const auto judge = [&](const KernelDurations& durations, const char* how) {
      const double prior_ns = model->second.NsOf(row.block_tasks);
      const core::Prediction predicted = durations.Predict(row.block_tasks, prior_ns);
      out.push_back(
          {family, how, name, static_cast<double>(predicted.duration_ns), Median(row.ns)});
    };
    judge(model->second.line, "line over block tasks");
    judge(model->second.durations, "line, rounds and sizes");
  }
}

void JudgeCopies(const Samples& samples, std::vector<Judged>& out) {
  const core::DeviceProfile device;  // the table learns what its rates are off by
  const CopyModel model =
      TrainCopies(samples, device, [](const SampleRow& row) { return !IsHeldOut(row); });
  for (const SampleRow& row : samples.rows) {
    const double measured = Median(row.ns);
    if (!IsSingleCopy(row) || !IsHeldOut(row) || measured < kCopyJudgedNs) continue;
    const core::Prediction prediction = model.Predict(device, CopyFeaturesOf(row));
    out.push_back({row.pinned ? "pinned copies" : "pageable copies", "table over bytes",
                   absl::StrCat(row.bytes, " bytes ", row.to_device ? "to" : "from", " the device"),
                   static_cast<double>(prediction.duration_ns), measured});
  }
}

}  // namespace gpushare::models
