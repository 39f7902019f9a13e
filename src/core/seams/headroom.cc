// Headroom and blocking (headroom.h holds the equations and their corrections).

#include "src/core/seams/headroom.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

}  // namespace

int64_t SaturatingSubtract(int64_t from, int64_t amount) {
  if (from == kNever) return kNever;
  int64_t difference = 0;
  if (__builtin_sub_overflow(from, amount, &difference)) {
    return amount > 0 ? kLeast : kNever - 1;
  }
  return std::min(difference, kNever - 1);
}

int64_t SaturatingAdd(int64_t a, int64_t b) {
  if (a == kNever || b == kNever) return kNever;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kNever : kLeast;
  return sum;
}

// Predictions err: a query whose tasks took longer than predicted needs nothing more, not less than
// nothing.
int64_t RemainingNotIssued(const QueryView& query) {
  return std::max<int64_t>(
      0, SaturatingSubtract(SaturatingSubtract(query.solo_ns, query.done_ns), query.issued_ns));
}

void ComputeHeadrooms(absl::Span<QueryView> queries, int64_t queued_ns, TimeNs now_ns) {
  int64_t before_ns = queued_ns;  // T_q and the remaining of the queries so far
  for (QueryView& query : queries) {
    before_ns = SaturatingAdd(before_ns, RemainingNotIssued(query));
    query.headroom_ns =
        query.deadline_ns == kNever
            ? kNever
            : SaturatingSubtract(SaturatingSubtract(query.deadline_ns, now_ns), before_ns);
  }
}

int64_t LeastHeadroom(absl::Span<const QueryView> queries) {
  int64_t least = kNever;
  for (const QueryView& query : queries) least = std::min(least, query.headroom_ns);
  return least;
}

int32_t ConcurrentCopies(double peak_rate, double copy_rate) {
  if (!(peak_rate > 0) || !(copy_rate > 0) || !std::isfinite(peak_rate)) return 1;
  const double at_full_speed = std::floor(peak_rate / copy_rate);
  // One copy fewer than there are task slots is more than any device runs.
  return static_cast<int32_t>(std::clamp(at_full_speed - 1, 1.0, double{kMaxTasks}));
}

int64_t BlockingBudget(int64_t target_ns, double p99_bound, int64_t p99_alone_ns, int64_t solo_ns) {
  int64_t budget = kNever;
  if (target_ns > 0) budget = std::max<int64_t>(0, SaturatingSubtract(target_ns, solo_ns));
  if (p99_bound > 0) {
    const auto p99_alone = static_cast<double>(p99_alone_ns > 0 ? p99_alone_ns : solo_ns);
    const double tolerated = (p99_bound - 1) * std::max(0.0, p99_alone);
    // 2^63 as a double is above every int64.
    const int64_t from_bound = tolerated <= 0       ? 0
                               : tolerated < 9.2e18 ? static_cast<int64_t>(tolerated)
                                                    : kNever - 1;
    budget = std::min(budget, from_bound);
  }
  return budget;
}

double PlannedBound(double bound, double share) {
  if (!(bound > 0)) return 0;
  return bound - std::min((1 - share) * std::max(0.0, bound - 1), kBoundMarginMax);
}

}  // namespace gpushare::core
