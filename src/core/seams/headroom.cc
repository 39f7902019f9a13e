// Headroom, gates and blocking (headroom.h holds the equations and their corrections).

#include "src/core/seams/headroom.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace gpushare::core {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

QueryTimes TimesOf(const QueryView& query) {
  return {.arrival_ns = query.arrival_ns,
          .deadline_ns = query.deadline_ns,
          .solo_ns = query.solo_ns,
          .issued_ns = query.issued_ns,
          .done_ns = query.done_ns};
}

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

int64_t RemainingNotIssued(const QueryTimes& query) {
  // Predictions err: a query whose tasks took longer than predicted needs nothing more, not less
  // than nothing.
  return std::max<int64_t>(
      0, SaturatingSubtract(SaturatingSubtract(query.solo_ns, query.done_ns), query.issued_ns));
}

int64_t HeadroomScan::Next(const QueryTimes& query) {
  before_ns_ = SaturatingAdd(before_ns_, RemainingNotIssued(query));
  if (query.deadline_ns == kNever) return kNever;
  return SaturatingSubtract(SaturatingSubtract(query.deadline_ns, now_ns_), before_ns_);
}

void ComputeHeadrooms(absl::Span<const QueryTimes> queries, int64_t queued_ns, TimeNs now_ns,
                      absl::Span<int64_t> headroom_ns) {
  assert(headroom_ns.size() >= queries.size() && "one headroom a query");
  HeadroomScan scan(queued_ns, now_ns);
  for (size_t i = 0; i < queries.size(); ++i) headroom_ns[i] = scan.Next(queries[i]);
}

void ComputeHeadrooms(absl::Span<QueryView> queries, int64_t queued_ns, TimeNs now_ns) {
  HeadroomScan scan(queued_ns, now_ns);
  for (QueryView& query : queries) query.headroom_ns = scan.Next(TimesOf(query));
}

int64_t LeastHeadroom(absl::Span<const QueryView> queries) {
  int64_t least = kNever;
  for (const QueryView& query : queries) least = std::min(least, query.headroom_ns);
  return least;
}

int64_t LeastHeadroom(absl::Span<const int64_t> headroom_ns) {
  int64_t least = kNever;
  for (int64_t headroom : headroom_ns) least = std::min(least, headroom);
  return least;
}

void DebitHeadrooms(absl::Span<int64_t> headroom_ns, int64_t duration_ns) {
  for (int64_t& headroom : headroom_ns) headroom = SaturatingSubtract(headroom, duration_ns);
}

int64_t HeadroomWithoutRefill(int64_t previous_ns, int64_t recomputed_ns) {
  return std::min(previous_ns, recomputed_ns);
}

bool MeetsTarget(int64_t queue_ns, int64_t lc_ns, int64_t fuse_ns, int64_t be_ns,
                 int64_t target_ns) {
  if (target_ns == kNever) return true;
  const int64_t latency =
      SaturatingAdd(SaturatingAdd(queue_ns, lc_ns), SaturatingAdd(fuse_ns, be_ns));
  return latency <= target_ns;
}

int64_t TackerHeadroom(absl::Span<const QueryTimes> queries, int64_t queued_ns, TimeNs now_ns) {
  HeadroomScan scan(queued_ns, now_ns);
  int64_t last = kNever;
  for (const QueryTimes& query : queries) last = scan.Next(query);
  return last;
}

int64_t QueuedTimeGate(absl::Span<const LcAppView> apps) {
  int64_t gate = kNever;
  for (const LcAppView& app : apps) {
    if (app.target_ns <= 0) continue;
    gate = std::min(gate, SaturatingSubtract(app.target_ns, app.solo_ns));
  }
  return std::max<int64_t>(0, gate);
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

}  // namespace gpushare::core
