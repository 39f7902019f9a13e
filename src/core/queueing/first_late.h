// Which of the queries behind a silence BE work makes late, and the longest launch that keeps a
// share of them.
//
// A query behind a silence that has waited for longer than the budget by twice what makes half of
// them late is late, and fewer are in proportion: the spread. A launch that nothing evicts leaves
// a uniform rest. Pure functions; any thread.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_FIRST_LATE_H_
#define GPUSHARE_SRC_CORE_QUEUEING_FIRST_LATE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/types.h"

namespace gpushare::core {

// `late_delay_ns`: a wait that makes half of the queries late; kNever: nobody knows.
inline double SpreadOfFirst(int64_t budget_ns, int64_t late_delay_ns) {
  return std::max(1.0, 2 * static_cast<double>(late_delay_ns - std::min(budget_ns, late_delay_ns)));
}

// The share that is late where each silence ends with a wait of `fixed_ns`, and of a uniform rest
// of up to `uniform_ns`.
inline double LateOfFirst(int64_t fixed_ns, int64_t uniform_ns, int64_t budget_ns,
                          int64_t late_delay_ns) {
  const double spread_ns = SpreadOfFirst(budget_ns, late_delay_ns);
  const auto least_ns = static_cast<double>(fixed_ns - budget_ns);
  if (uniform_ns <= 0) return std::clamp(least_ns / spread_ns, 0.0, 1.0);
  // The sum of the shares over all shorter waits.
  const auto sum = [&](double beyond_ns) {
    const double within_ns = std::clamp(beyond_ns, 0.0, spread_ns);
    return within_ns * within_ns / (2 * spread_ns) + std::max(0.0, beyond_ns - spread_ns);
  };
  const auto length_ns = static_cast<double>(uniform_ns);
  return (sum(least_ns + length_ns) - sum(least_ns)) / length_ns;
}

// The longest uniform rest of which at most the share `late_max` is late, and of which none makes
// more than half of those late that meet its begin.
inline int64_t LongestOfFirst(double late_max, int64_t budget_ns, int64_t late_delay_ns) {
  if (late_max <= 0 || late_delay_ns == kNever || budget_ns >= late_delay_ns) return budget_ns;
  const double spread_ns = SpreadOfFirst(budget_ns, late_delay_ns);
  // Half of the square of what is beyond the budget, over the spread, is late_max of the length.
  const double part_ns = late_max * spread_ns;
  const double beyond_ns =
      part_ns + std::sqrt(part_ns * part_ns + 2 * part_ns * static_cast<double>(budget_ns));
  const double most_ns = static_cast<double>(late_delay_ns - budget_ns);
  return budget_ns + static_cast<int64_t>(std::min(beyond_ns, most_ns));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_FIRST_LATE_H_
