// Four forms and their left-out errors; see train_durations.h.

#include "src/models/training/train_durations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "src/core/base/quantile.h"
#include "src/models/durations/prior.h"

namespace gpushare::models {
namespace {

// The clocks of two runs differ by as much, whatever the repeats of one say.
constexpr double kErrorLeast = 0.01;

struct ShapeForm {
  int32_t round = 0;
  bool has_ratios = false;
  double left_out_error = 0;  // relative; 0: not known
};

using SeeSample = absl::FunctionRef<void(int64_t block_tasks, double ns)>;

void ForEachInTurn(absl::Span<const SoloSize> sizes, SeeSample see) {
  size_t repeats = 0;
  for (const SoloSize& size : sizes) repeats = std::max(repeats, size.ns.size());
  for (size_t i = 0; i < repeats; ++i) {
    for (const SoloSize& size : sizes) {
      if (i < size.ns.size()) see(size.block_tasks, static_cast<double>(size.ns[i]));
    }
  }
}

double MedianNs(const SoloSize& size) {
  return std::max(1.0, static_cast<double>(core::SortedAt(size.ns, size.ns.size() / 2)));
}

double PredictedNs(const KernelDurations& model, int64_t block_tasks, PriorNs prior_ns) {
  return static_cast<double>(model.Predict(block_tasks, prior_ns(block_tasks)).duration_ns);
}

KernelDurations FitLine(absl::Span<const SoloSize> sizes, const DurationShape& shape,
                        PriorNs prior_ns) {
  KernelDurations model;
  model.Restore(LinearState(), shape);
  ForEachInTurn(sizes, [&](int64_t block_tasks, double ns) {
    model.Observe(block_tasks, ns, prior_ns(block_tasks));
  });
  return model;
}

KernelDurations Fit(absl::Span<const SoloSize> sizes, const ShapeForm& form, PriorNs prior_ns) {
  DurationShape shape;
  shape.round = form.round;
  KernelDurations model = FitLine(sizes, shape, prior_ns);
  if (!form.has_ratios) return model;
  for (const SoloSize& size : sizes) {
    if (size.ns.empty()) continue;
    const double line_ns = std::max(1.0, PredictedNs(model, size.block_tasks, prior_ns));
    const double ratio = MedianNs(size) / line_ns;
    if (ratio > DurationShape::kRatioMax || ratio * DurationShape::kRatioMax < 1) return model;
    shape.ratios.push_back({static_cast<double>(size.block_tasks), ratio});
  }
  std::sort(shape.ratios.begin(), shape.ratios.end(),
            [](const SizeRatio& a, const SizeRatio& b) { return a.block_tasks < b.block_tasks; });
  model.Restore(model.line(), shape);
  return model;
}

// Mean relative error of the sizes, each predicted by a fit to the others.
double LeftOutError(absl::Span<const SoloSize> sizes, const ShapeForm& form, PriorNs prior_ns) {
  double sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<SoloSize> others(sizes.begin(), sizes.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const KernelDurations model = Fit(others, form, prior_ns);
    const double measured_ns = MedianNs(sizes[i]);
    sum += std::abs(PredictedNs(model, sizes[i].block_tasks, prior_ns) / measured_ns - 1);
  }
  return sum / static_cast<double>(sizes.size());
}

ShapeForm BestForm(absl::Span<const SoloSize> sizes, int32_t round, PriorNs prior_ns) {
  ShapeForm best;
  const bool measured = std::all_of(sizes.begin(), sizes.end(), [](const SoloSize& size) {
    return size.block_tasks > 0 && !size.ns.empty();
  });
  if (!measured || sizes.size() < kSizesLeast) return best;
  best.left_out_error = LeftOutError(sizes, best, prior_ns);
  for (ShapeForm form : {ShapeForm{round, false}, ShapeForm{0, true}, ShapeForm{round, true}}) {
    if (form.has_ratios && sizes.size() > DurationShape::kRatiosMax) continue;
    form.left_out_error = LeftOutError(sizes, form, prior_ns);
    if (form.left_out_error < best.left_out_error) best = form;
  }
  return best;
}

}  // namespace

void AddRepeats(int64_t block_tasks, absl::Span<const double> ns, std::vector<SoloSize>& sizes) {
  auto size = std::find_if(sizes.begin(), sizes.end(), [block_tasks](const SoloSize& known) {
    return known.block_tasks == block_tasks;
  });
  if (size == sizes.end()) size = sizes.insert(sizes.end(), {block_tasks, {}});
  for (const double one : ns) size->ns.push_back(std::llround(one));
}

LinearState TrainLine(absl::Span<const SoloSize> sizes, PriorNs prior_ns) {
  return Fit(sizes, ShapeForm(), prior_ns).line();
}

TrainedDurations TrainDurations(absl::Span<const SoloSize> sizes, int32_t round, PriorNs prior_ns) {
  const ShapeForm form = BestForm(sizes, round, prior_ns);
  const KernelDurations model = Fit(sizes, form, prior_ns);
  double squares = 0;
  double samples = 0;
  ForEachInTurn(sizes, [&](int64_t block_tasks, double ns) {
    const double error = (PredictedNs(model, block_tasks, prior_ns) - ns) / std::max(1.0, ns);
    squares += error * error;
    ++samples;
  });
  TrainedDurations trained{model.line(), model.shape()};
  if (samples > 0) {
    const double least = std::max(kErrorLeast, form.has_ratios ? form.left_out_error : 0);
    trained.line.squared_error = std::clamp(squares / samples, std::min(1.0, least * least), 1.0);
  }
  return trained;
}

TrainedDurations TrainDurations(const core::DeviceProfile& device, const core::KernelDesc& kernel,
                                absl::Span<const SoloSize> sizes) {
  const KernelPrior prior(device, kernel);
  return TrainDurations(sizes, device.sm_count,
                        [&prior](int64_t block_tasks) { return prior.NsOf(block_tasks); });
}

}  // namespace gpushare::models
