// An excerpt of a run as inline SVG: the LC and BE launches on each set of SMs over time, with
// arrivals and evictions.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_TIMELINE_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_TIMELINE_H_

#include <string>
#include <vector>

#include "tools/gpushare/events/event_index.h"

namespace gpushare::tool {

// The window as two drawings, for wide and for narrow screens (report_style.h shows one of them).
// Empty if the log has no finished launch.
std::string TimelineSvg(const EventIndexEntry& run, const std::vector<gpushare_event>& events);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_TIMELINE_H_
