// A line and the shape beside it; see kernel_durations.h.

#include "src/models/durations/kernel_durations.h"

#include <algorithm>
#include <cmath>

#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

int64_t Scaled(int64_t ns, double ratio) {
  const double scaled = ratio * static_cast<double>(ns);
  return std::llround(std::min(scaled, static_cast<double>(core::kMaxDurationNs)));
}

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }

}  // namespace

double KernelDurations::SizeOf(int64_t block_tasks) const {
  if (round_ <= 0) return static_cast<double>(block_tasks);
  const int64_t short_of_a_round = (round_ - block_tasks % round_) % round_;
  return static_cast<double>(block_tasks) + static_cast<double>(short_of_a_round);
}

// On the line between the nearest sizes, over the logarithm of the size; beyond the last one it
// stays.
double KernelDurations::RatioAt(int64_t block_tasks) const {
  if (known_count_ == 0) return 1;
  const auto size = static_cast<double>(block_tasks);
  const Known* const first = known_.data();
  const Known* const last = first + known_count_ - 1;
  if (size <= first->size) return first->ratio;
  if (size >= last->size) return last->ratio;
  const Known* above = first + 1;
  while (above->size < size) ++above;
  const Known* const below = above - 1;
  const double share = (std::log2(size) - below->log_size) / (above->log_size - below->log_size);
  return below->ratio + share * (above->ratio - below->ratio);
}

core::Prediction KernelDurations::Predict(int64_t block_tasks, double prior_ns) const {
  core::Prediction out = line_.Predict(SizeOf(block_tasks), prior_ns);
  if (known_count_ == 0) return out;
  const double ratio = RatioAt(block_tasks);
  out.duration_ns = Scaled(out.duration_ns, ratio);
  out.error_ns = Scaled(out.error_ns, ratio);
  return out;
}

bool KernelDurations::Observe(int64_t block_tasks, double measured_ns, double prior_ns) {
  return line_.Observe(SizeOf(block_tasks), measured_ns / RatioAt(block_tasks), prior_ns);
}

DurationShape KernelDurations::shape() const {
  DurationShape shape;
  shape.round = round_;
  for (size_t i = 0; i < known_count_; ++i) {
    shape.ratios.push_back({known_[i].size, known_[i].ratio});
  }
  return shape;
}

void KernelDurations::Restore(const LinearState& line, const DurationShape& shape) {
  line_.Restore(line);
  round_ = std::max(0, shape.round);
  known_count_ = 0;
  double last = 0;
  for (const SizeRatio& one : shape.ratios) {
    if (known_count_ == known_.size()) return;
    if (!IsPositive(one.ratio) || !IsPositive(one.block_tasks) || one.block_tasks <= last) continue;
    last = one.block_tasks;
    known_[known_count_++] = {one.block_tasks, std::log2(one.block_tasks), one.ratio};
  }
}

}  // namespace gpushare::models
