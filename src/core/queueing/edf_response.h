// Upper bounds of response times under earliest deadline first, for classes that DemandHolds keeps.
//
// Two bounds; the smaller one counts.
// - By slack. A job with its deadline t after the start of its busy period ends at h(t) at the
//   latest, so its response is at most D - (t - h(t)), and R_i <= D_i - min over t >= D_i of
//   (t - h(t)). One walk over all deadlines of the longest busy period bounds every class.
// - By release (Spuri, 1996; with blocking George, Rivierre and Spuri, 1996): a job released a
//   after the start of a busy period in which all other tasks are released at 0 and as often as
//   they may be. Exact where jobs are preempted at once.
//
// Both are sound for a job that is preempted, that waits for a blocker, and that runs to its end
// once it has started. Times are nanoseconds. Pure; any thread.

#ifndef GPUSHARE_SRC_CORE_QUEUEING_EDF_RESPONSE_H_
#define GPUSHARE_SRC_CORE_QUEUEING_EDF_RESPONSE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/core/queueing/edf_demand.h"

namespace gpushare::core {

// Rounds of the search for the busy period. A utilisation within 1e-4 of 1 may take more.
inline constexpr int kBusyRoundsMax = 10'000;

// The longest time for which jobs can be pending without a gap; kNever at a utilisation of 1 or
// more, and beyond kBusyRoundsMax rounds.
int64_t BusyPeriodNs(std::span<const DemandClass> classes);

// One bound for each class, of a job of any of its tasks. `classes` in the order of their
// deadlines, and DemandHolds is true. `steps`: visits of a class that the call may make; it takes
// off what it made. Where they do not suffice, a class has its deadline, which DemandHolds proved.
std::vector<int64_t> ResponseBoundsNs(std::span<const DemandClass> classes, int64_t& steps);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_QUEUEING_EDF_RESPONSE_H_
