// Times as traces write them.
//
// Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_SCENARIO_TRACE_TIME_H_
#define GPUSHARE_TOOLS_GPUSHARE_SCENARIO_TRACE_TIME_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpushare::tool {

// Nanoseconds of a number of units or of "YYYY-MM-DD HH:MM:SS[.fraction]", with 'T' instead of the
// blank and 'Z' or an offset from UTC behind it. Time stamps count from 1970, exactly. None: it is
// neither.
std::optional<int64_t> TimeNs(std::string_view text, int64_t unit_ns);

// None: negative, not a number, or beyond 285 years.
std::optional<int64_t> NumberNs(double value, int64_t unit_ns);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_SCENARIO_TRACE_TIME_H_
