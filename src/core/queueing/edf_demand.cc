// Processor demand and QPA. See edf_demand.h.

#include "src/core/queueing/edf_demand.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/core/base/types.h"

namespace gpushare::core {
namespace {

// What rounding may do to sums of doubles: a yes by lines keeps this distance, relative and in ns.
constexpr double kRounding = 1e-12;
constexpr double kRoundingNs = 0.5;
// A utilisation this close to 1 counts as 1.
constexpr double kFullShare = 1e-9;
// A horizon beyond it is none: its demand fits in 64 bits even where 1,024 tasks ask for all of it,
// as they may at a suspect interval. 46 days.
constexpr double kHorizonNsMax = 4e15;

// The largest t below `interval_ns` at which a job has its deadline; 0: none.
int64_t DeadlineBelow(std::span<const DemandClass> classes, int64_t interval_ns) {
  int64_t latest = 0;
  for (const DemandClass& one : classes) {
    if (one.deadline_ns >= interval_ns) break;
    const int64_t jobs = (interval_ns - 1 - one.deadline_ns) / one.period_ns;
    latest = std::max(latest, one.deadline_ns + jobs * one.period_ns);
  }
  return latest;
}

// QPA over [low, high) with one blocking term.
bool HoldsWithin(std::span<const DemandClass> classes, int64_t low, int64_t high,
                 int64_t blocking_ns, int& steps, int64_t& suspect_ns) {
  int64_t interval = DeadlineBelow(classes, high);
  while (interval >= low) {
    if (--steps < 0) return false;
    const int64_t demand = WorkWithinNs(classes, interval) + blocking_ns;
    if (demand > interval) {
      suspect_ns = interval;
      return false;
    }
    interval = demand < interval ? demand : DeadlineBelow(classes, interval);
  }
  return true;
}

}  // namespace

int64_t DemandNs(std::span<const DemandClass> classes, int64_t interval_ns) {
  return WorkWithinNs(classes, interval_ns) + BlockingNs(classes, interval_ns);
}

int64_t BlockingNs(std::span<const DemandClass> classes, int64_t interval_ns) {
  int64_t longest = 0;
  for (size_t i = classes.size(); i-- > 0 && classes[i].deadline_ns > interval_ns;) {
    longest = std::max(longest, classes[i].blocking_ns);
  }
  return longest;
}

int64_t WorkWithinNs(std::span<const DemandClass> classes, int64_t interval_ns) {
  int64_t sum = 0;
  for (const DemandClass& one : classes) {
    if (one.deadline_ns > interval_ns) break;
    sum += JobsWithin(one, interval_ns) * one.work_ns;
  }
  return sum;
}

double DemandUtilisation(std::span<const DemandClass> classes) {
  double sum = 0;
  for (const DemandClass& one : classes) {
    sum += static_cast<double>(one.work_ns) / static_cast<double>(one.period_ns);
  }
  return sum;
}

int64_t DemandHorizonNs(std::span<const DemandClass> classes) {
  if (classes.empty()) return 0;
  const double left = 1 - DemandUtilisation(classes);
  if (!(left > kFullShare)) return kNever;
  double carried = 0;  // sum of U (T - D): where the line of the demand starts
  for (const DemandClass& one : classes) {
    const auto slack = static_cast<double>(one.period_ns - one.deadline_ns);
    carried += slack * static_cast<double>(one.work_ns) / static_cast<double>(one.period_ns);
  }
  const double horizon = carried / left * (1 + kFullShare) + 1;
  if (horizon > kHorizonNsMax) return kNever;
  return std::max(classes.back().deadline_ns, static_cast<int64_t>(horizon));
}

bool DemandHoldsByLines(std::span<const DemandClass> classes) {
  double at_zero = 0;  // of the sum of lines: the demand is at most at_zero + rate t
  double rate = 0;
  for (const DemandClass& one : classes) {
    const auto work = static_cast<double>(one.work_ns);
    const double share = work / static_cast<double>(one.period_ns);
    at_zero += work - share * static_cast<double>(one.deadline_ns);
    rate += share;
  }
  if (rate > 1 - kFullShare) return false;
  // Between two deadlines the line rises slower than t, so that it is enough to look at deadlines.
  int64_t blocking = 0;
  for (size_t i = classes.size(); i-- > 0;) {
    const DemandClass& one = classes[i];
    const auto work = static_cast<double>(one.work_ns);
    const auto deadline = static_cast<double>(one.deadline_ns);
    const double demand = at_zero + rate * deadline + static_cast<double>(blocking);
    if (demand > deadline * (1 - kRounding) - kRoundingNs) return false;
    const double share = work / static_cast<double>(one.period_ns);
    at_zero -= work - share * deadline;
    rate -= share;
    blocking = std::max(blocking, one.blocking_ns);
  }
  return true;
}

bool DemandHolds(std::span<const DemandClass> classes, int64_t& suspect_ns) {
  if (classes.empty()) return true;
  // Below the shortest deadline nothing is due, so that blocking alone does no harm.
  const bool suspect = suspect_ns >= classes.front().deadline_ns;
  if (suspect && DemandNs(classes, suspect_ns) > suspect_ns) return false;
  if (DemandHoldsByLines(classes)) return true;
  const int64_t horizon = DemandHorizonNs(classes);
  if (horizon == kNever) return false;
  // From the longest deadline down: [D, horizon] has no blocking, and below each deadline the
  // blocking of its class joins.
  int steps = kDemandStepsMax;
  int64_t blocking = 0;
  int64_t high = horizon + 1;
  for (size_t i = classes.size(); i-- > 0;) {
    if (classes[i].blocking_ns <= blocking) continue;
    const int64_t low = classes[i].deadline_ns;
    if (low < high) {
      if (!HoldsWithin(classes, low, high, blocking, steps, suspect_ns)) return false;
      high = low;
    }
    blocking = classes[i].blocking_ns;
  }
  return HoldsWithin(classes, classes.front().deadline_ns, high, blocking, steps, suspect_ns);
}

bool DemandHolds(std::span<const DemandClass> classes) {
  int64_t suspect_ns = 0;
  return DemandHolds(classes, suspect_ns);
}

}  // namespace gpushare::core
