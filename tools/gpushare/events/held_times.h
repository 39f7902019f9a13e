// For how long BE tasks were held and why, from an event log.
//
// A hold begins with its event HELD and ends with a launch, a HELD for another reason or the task's
// end. The library logs no second HELD for the same reason when an evicted task is held again. So
// the time from the end of a task's last launch until the next one counts for the last reason.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_HELD_TIMES_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_HELD_TIMES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

// The times by app, the longest first. `events` are in order of time. GPUSHARE_REASON_NONE: an
// evicted task that was submitted before the first event waited, and its last reason is not in the
// log.
std::map<uint32_t, std::vector<HeldTime>> HeldTimesOf(const std::vector<gpushare_event>& events);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_HELD_TIMES_H_
