// Response times of periodic tasks under fixed priorities on one serial resource.
//
// The busy period of a level (Lehoczky, 1990): in it every job q of task i ends at most at
//
//   w = b + q C_i + sum over higher j of ceil(w / T_j) C_j
//
// after the start, and R_i = max over q of (w - (q - 1) T_i). b is the longest blocking of a lower
// priority. A job that may not be preempted ends no later than one that may, so the bound holds
// for both. Deadlines are at most the periods. Times are nanoseconds. Pure; nothing allocates; any
// thread.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_FIXED_PRIORITY_H_
#define GPUSHARE_SRC_CORE_QUEUEING_FIXED_PRIORITY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/core/queueing/edf_demand.h"

namespace gpushare::core {

// Rounds of one fixed point, and jobs of one busy period.
inline constexpr int kFixedPriorityRoundsMax = 10'000;

// The response of the tasks of classes[i], which share a priority; kNever where it is beyond the
// deadline or the bound of rounds. `classes` in the order of their priorities, highest first.
int64_t FixedPriorityResponseNs(std::span<const DemandClass> classes, size_t i);

// Whether every class keeps its deadline.
bool FixedPriorityHolds(std::span<const DemandClass> classes);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_FIXED_PRIORITY_H_
