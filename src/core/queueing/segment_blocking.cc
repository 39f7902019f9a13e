// The wait for a graph in segments. See segment_blocking.h.

#include "src/core/queueing/segment_blocking.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/queueing/vacation.h"

namespace gpushare::core {
namespace {

// Waits with a larger exponent would decide the moment even at a share of 1e-20, which no p99
// shows. The moment then counts as infinite, and the longest wait limits the shift.
constexpr double kExponentMax = 60;

}  // namespace

SegmentBlocking::SegmentBlocking(absl::Span<const int64_t> durations_ns, int64_t segment_ns,
                                 absl::Span<const int64_t> block_tasks_ns) {
  double sum_ns = 0;
  const auto load_of = [&](size_t i) -> SegmentLoad {
    return {durations_ns[i], !block_tasks_ns.empty() && block_tasks_ns[i] > 0};
  };
  const auto running_of = [&](size_t i) {
    return load_of(i).evictable ? block_tasks_ns[i] : durations_ns[i];
  };
  const auto behind_of = [&](size_t i) -> int64_t {
    if (i + 1 == durations_ns.size()) return 0;
    return JoinsOutstanding(load_of(i), load_of(i + 1), segment_ns) ? running_of(i + 1) : 0;
  };
  for (size_t i = 0; i < durations_ns.size(); ++i) {
    sum_ns += static_cast<double>(durations_ns[i]);
    longest_ns_ = std::max(longest_ns_, running_of(i) + behind_of(i));
  }
  if (!(sum_ns > 0)) return;
  classes_ = kClasses;
  for (size_t i = 0; i < durations_ns.size(); ++i) {
    if (durations_ns[i] <= 0) continue;
    const auto running_ns = static_cast<double>(running_of(i));
    const auto behind_ns = static_cast<double>(behind_of(i));
    const double octaves = std::log2(static_cast<double>(longest_ns_) / (running_ns + behind_ns));
    Class& one = class_[std::min(kClasses - 1, static_cast<size_t>(2 * octaves))];
    const double share = static_cast<double>(durations_ns[i]) / sum_ns;
    one.share += share;
    one.running_ns += share * running_ns;
    one.behind_ns += share * behind_ns;
  }
  for (Class& one : class_) {
    if (one.share <= 0) continue;
    one.running_ns /= one.share;
    one.behind_ns /= one.share;
  }
}

double SegmentBlocking::Moment(double tail_rate) const {
  double sum = 0;
  for (size_t i = 0; i < classes_; ++i) {
    const Class& one = class_[i];
    if (one.share <= 0) continue;
    const double exponent = tail_rate * one.behind_ns + ShiftOfVacation(tail_rate * one.running_ns);
    if (exponent > kExponentMax) return std::numeric_limits<double>::infinity();
    sum += one.share * std::exp(exponent);
  }
  return sum;
}

double SegmentBlocking::mean_ns() const {
  double sum = 0;
  for (const Class& one : class_) sum += one.share * (one.running_ns / 2 + one.behind_ns);
  return sum;
}

int64_t SegmentBlocking::ShiftNs(double tail_rate, double seen_mean_ns) const {
  const double scale = seen_mean_ns > 0 ? std::min(1.0, seen_mean_ns / mean_ns()) : 1;
  const double longest_ns = scale * static_cast<double>(longest_ns_);
  if (!(tail_rate > 0)) return static_cast<int64_t>(longest_ns);
  // ln E[exp(eta s W)] / eta.
  return static_cast<int64_t>(
      std::min(longest_ns, std::log(Moment(scale * tail_rate)) / tail_rate));
}

}  // namespace gpushare::core
