// Durations of copies; see copy_model.h.

#include "src/models/online/copy_model.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/limits.h"
#include "src/models/durations/prior.h"

namespace gpushare::models {
namespace {

// Before so many samples the line predicts, which needs fewer.
constexpr int64_t kTableSamples = 8;
constexpr double kSmoothing = 1.0 / 16;
constexpr double kAnnounced = 0.1;      // a smaller change of a duration changes no plan
constexpr double kErrorShownMax = 0.5;  // one outlier decides nothing

}  // namespace

bool CopyModel::Kind::has_table() const { return samples >= kTableSamples; }

void CopyModel::Kind::ShiftPastDrift(double factor) {
  factors[seen++ % kWindow] = factor;
  if (seen < kWindow) return;
  double mean = 0;
  double log_sum = 0;
  int drifted = 0;
  for (const double one : factors) {
    const double off = std::min(std::abs(1 / one - 1), kErrorShownMax);
    mean += off / kWindow;
    if (off <= kAnnounced) continue;
    log_sum += std::log(one);
    ++drifted;
  }
  // One copy that the host held up is no drift, however late it was.
  if (mean <= kAnnounced || 2 * drifted < static_cast<int>(kWindow)) return;
  table.Shift(std::exp(log_sum / drifted));
  seen = 0;
}

core::Prediction CopyModel::Predict(const core::DeviceProfile& device,
                                    const core::TaskFeatures& features) const {
  const auto bytes = static_cast<double>(features.bytes);
  const double prior_ns = CopyPriorNs(device, features.direction, features.pinned, bytes);
  const Kind& kind = kinds_[IndexOf(features.direction, features.pinned)];
  if (!kind.has_table()) return kind.line.Predict(bytes, prior_ns);
  const double ns =
      std::min(prior_ns * kind.table.RatioAt(bytes), static_cast<double>(core::kMaxDurationNs));
  return {std::llround(ns), std::llround(ns * kind.error), true};
}

bool CopyModel::Observe(const core::DeviceProfile& device, const core::TaskFeatures& features,
                        double measured_ns) {
  const auto bytes = static_cast<double>(features.bytes);
  const double prior_ns = CopyPriorNs(device, features.direction, features.pinned, bytes);
  Kind& kind = kinds_[IndexOf(features.direction, features.pinned)];
  const double known = std::max(1.0, measured_ns);
  const double ratio_before = kind.table.RatioAt(bytes);
  const double off = std::abs(prior_ns * ratio_before - known) / known;
  ++kind.samples;
  const double gain = std::max(kSmoothing, 1.0 / static_cast<double>(kind.samples));
  kind.error += gain * (std::min(off, kErrorShownMax) - kind.error);
  // A size that the table does not know yet is off without any drift.
  if (kind.has_table() && kind.table.Knows(bytes)) {
    kind.ShiftPastDrift(known / std::max(1.0, prior_ns * ratio_before));
  }
  kind.table.Observe(bytes, known / prior_ns);
  const bool line_moved = kind.line.Observe(bytes, measured_ns, prior_ns);
  if (kind.samples <= kTableSamples) return line_moved || kind.has_table();
  return std::abs(kind.table.RatioAt(bytes) - ratio_before) > kAnnounced * ratio_before;
}

std::vector<LearnedCopies> CopyModel::Save() const {
  std::vector<LearnedCopies> learned;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const Kind& kind = kinds_[i];
    const LinearState& line = kind.line.state();
    if (line.samples == 0) continue;
    learned.push_back({static_cast<int32_t>(i / 2),
                       i % 2 == 1,
                       line,
                       {kind.samples, kind.error, kind.table.points()}});
  }
  return learned;
}

void CopyModel::Restore(const std::vector<LearnedCopies>& learned) {
  for (const LearnedCopies& one : learned) {
    Kind& kind = kinds_[IndexOf(static_cast<core::CopyDirection>(one.direction), one.pinned)];
    kind = {};
    kind.line.Restore(one.line);
    if (one.table.points.empty()) continue;
    kind.table.Restore(one.table.points);
    kind.samples = one.table.samples;
    kind.error = one.table.error;
  }
}

}  // namespace gpushare::models
