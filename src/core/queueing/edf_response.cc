// Bounds of response times under EDF. See edf_response.h.

#include "src/core/queueing/edf_response.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/core/base/types.h"

namespace gpushare::core {
namespace {

constexpr int64_t CeilDivide(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t LatestDeadlineUpTo(std::span<const DemandClass> classes, int64_t interval_ns) {
  int64_t latest = 0;
  for (const DemandClass& one : classes) {
    const int64_t jobs = JobsWithin(one, interval_ns);
    if (jobs > 0) latest = std::max(latest, one.deadline_ns + (jobs - 1) * one.period_ns);
  }
  return latest;
}

// The bound by slack, into `bounds`, which holds the deadlines.
void BoundBySlack(std::span<const DemandClass> classes, int64_t busy_ns, int64_t& steps,
                  std::vector<int64_t>& bounds) {
  const std::vector<int64_t> deadlines = bounds;
  const auto count = static_cast<int64_t>(classes.size());
  int64_t slack = kNever;
  size_t next = classes.size();  // classes from here on have their bound
  int64_t interval = LatestDeadlineUpTo(classes, busy_ns + classes.back().deadline_ns);
  while (next > 0 && interval > 0) {
    if ((steps -= count) < 0) return;
    const int64_t demand = DemandNs(classes, interval);
    slack = std::min(slack, interval - demand);
    while (next > 0 && classes[next - 1].deadline_ns >= interval) {
      --next;
      bounds[next] = std::min(deadlines[next], deadlines[next] - slack);
    }
    interval = LatestDeadlineUpTo(classes, interval - 1);
  }
}

// When a job of class `i`, released `release_ns` after the start of its busy period, ends at most.
int64_t EndNs(std::span<const DemandClass> classes, size_t i, int64_t release_ns, int64_t& steps) {
  const int64_t deadline = release_ns + classes[i].deadline_ns;
  const int64_t own = (release_ns / classes[i].period_ns + 1) * classes[i].work_ns;
  const int64_t blocking = BlockingNs(classes, deadline);
  int64_t end = blocking + own;
  while (true) {
    if ((steps -= static_cast<int64_t>(classes.size())) < 0) return kNever;
    int64_t next = blocking + own;
    for (size_t j = 0; j < classes.size(); ++j) {
      if (j == i) continue;
      const int64_t jobs = std::min(JobsWithin(classes[j], deadline),
                                    std::max<int64_t>(1, CeilDivide(end, classes[j].period_ns)));
      next += jobs * classes[j].work_ns;
    }
    if (next <= end) return end;
    end = next;
  }
}

// The bound by release of class `i`; kNever where the steps did not suffice.
int64_t BoundByRelease(std::span<const DemandClass> classes, size_t i, int64_t busy_ns,
                       int64_t& steps) {
  int64_t bound = 0;
  for (const DemandClass& other : classes) {
    // Releases at which the deadline meets one of `other`.
    int64_t release = other.deadline_ns - classes[i].deadline_ns;
    if (release < 0) release += CeilDivide(-release, other.period_ns) * other.period_ns;
    for (; release < busy_ns; release += other.period_ns) {
      const int64_t end = EndNs(classes, i, release, steps);
      if (end == kNever) return kNever;
      bound = std::max(bound, end - release);
    }
  }
  return bound;
}

}  // namespace

int64_t BusyPeriodNs(std::span<const DemandClass> classes) {
  int64_t longest = 0;
  for (const DemandClass& one : classes) longest = std::max(longest, one.blocking_ns);
  int64_t busy = longest;
  for (const DemandClass& one : classes) busy += one.work_ns;
  if (!(DemandUtilisation(classes) < 1)) return kNever;
  for (int round = 0; round < kBusyRoundsMax; ++round) {
    int64_t next = longest;
    for (const DemandClass& one : classes) {
      next += CeilDivide(busy, one.period_ns) * one.work_ns;
    }
    if (next == busy) return busy;
    busy = next;
  }
  return kNever;
}

std::vector<int64_t> ResponseBoundsNs(std::span<const DemandClass> classes, int64_t& steps) {
  std::vector<int64_t> bounds;
  bounds.reserve(classes.size());
  for (const DemandClass& one : classes) bounds.push_back(one.deadline_ns);
  const int64_t busy = BusyPeriodNs(classes);
  if (classes.empty() || busy == kNever) return bounds;
  BoundBySlack(classes, busy, steps, bounds);
  for (size_t i = 0; i < classes.size() && steps > 0; ++i) {
    bounds[i] = std::min(bounds[i], BoundByRelease(classes, i, busy, steps));
  }
  return bounds;
}

}  // namespace gpushare::core
