// A line or a table over the size; see query_model.h.

#include "src/models/durations/query_model.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

// Before so many samples the table has hardly a size on each side of a query's.
constexpr int64_t kTableSamples = 8;
constexpr double kSmoothing = 1.0 / 16;
constexpr double kErrorCountedMax = 0.5;  // one outlier decides nothing
constexpr double kAnnounced = 0.1;        // a smaller change of a duration changes no plan

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }

void Follow(double predicted_ns, double measured_ns, double gain, double& error) {
  const double off = std::abs(predicted_ns - measured_ns) / measured_ns;
  error += gain * (std::min(off, kErrorCountedMax) - error);
}

}  // namespace

bool QueryModel::TablePredicts(double size) const {
  return samples_ >= kTableSamples && table_error_ < line_error_ && size > 0;
}

core::Prediction QueryModel::Predict(double size, double prior_ns) const {
  if (!TablePredicts(size)) return line_.Predict(size, prior_ns);
  const double ns =
      std::min(prior_ns * table_.TrendAt(size), static_cast<double>(core::kMaxDurationNs));
  return {std::llround(ns), std::llround(ns * table_error_), true};
}

bool QueryModel::Observe(double size, double measured_ns, double prior_ns) {
  if (!IsPositive(size) || !IsPositive(measured_ns) || !IsPositive(prior_ns)) return false;
  const auto before = static_cast<double>(Predict(size, prior_ns).duration_ns);
  ++samples_;
  const double gain = std::max(kSmoothing, 1.0 / static_cast<double>(samples_));
  Follow(static_cast<double>(line_.Predict(size, prior_ns).duration_ns), measured_ns, gain,
         line_error_);
  Follow(prior_ns * table_.TrendAt(size), measured_ns, gain, table_error_);
  const bool line_moved = line_.Observe(size, measured_ns, prior_ns);
  table_.Observe(size, measured_ns / prior_ns);
  const auto after = static_cast<double>(Predict(size, prior_ns).duration_ns);
  return (line_moved && !TablePredicts(size)) || std::abs(after - before) > kAnnounced * before;
}

QueryModelState QueryModel::state() const {
  return {line_.state(), table_.points(), samples_, line_error_, table_error_};
}

void QueryModel::Restore(const QueryModelState& state) {
  line_.Restore(state.line);
  table_.Restore(state.table);
  samples_ = state.samples;
  line_error_ = state.line_error;
  table_error_ = state.table_error;
}

}  // namespace gpushare::models
